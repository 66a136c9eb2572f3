"""A run whose delays are by one clock, as far as messages bound the offsets of its peers' clocks.

A clock's offset is taken to be in the middle of its bounds (vizpub.questions.arrivals.clocks). A
delay is corrected if the offsets of the publisher and of the receiver both have two bounds; all
others stay as reported. What the run stores does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.clock import duration
from vizpub.model.errors import UseError
from vizpub.model.wording import amount
from vizpub.questions.arrivals.clocks import bound_offsets
from vizpub.questions.attributes.groups import DELAYS
from vizpub.questions.frames import Frame
from vizpub.questions.names import Where
from vizpub.questions.run import Run
from vizpub.questions.sql import ShiftedRun, read_answer

AS_REPORTED = "clocks are compared as peers report their times, not with corrected clocks"
# As vizpub.analytics.messages.message_measures has it.
_MEASURES = f"""
WITH had AS (SELECT message, peer, time_us FROM stored."receptions" WHERE first)
SELECT r.message, {DELAYS},
    CASE WHEN count(r.time_us) > 0 THEN
        count(*) FILTER (delay_us < 0 OR r.time_us < had.time_us)
    END AS causality_violations
FROM receptions r LEFT JOIN had ON had.message = r.message AND had.peer = r.previous_hop
GROUP BY ALL
"""


@dataclass(frozen=True, repr=False)
class CorrectedRun(Run):
    """A run with corrected times of receptions: by the clock of each message's publisher."""

    bounds: pa.Table
    """As `bound_offsets` returns them."""

    @classmethod
    def of(cls, run: Run, where: Where, reference: str | None = None) -> CorrectedRun:
        """The run, with offsets from the messages of a window. Raises: as `bound_offsets`."""
        bounds = bound_offsets(run, where, reference)
        low, high = bounds["offset_us_min"], bounds["offset_us_max"]
        middle = pc.add(low, pc.shift_right(pc.subtract(high, low), 1))
        offsets = pa.table({"peer": bounds["peer"], "offset_us": middle}).drop_null()
        shifted = ShiftedRun(run.stored.directory, run.stored.manifest, offsets)
        return cls(replace(shifted, measured=read_answer(shifted, _MEASURES)), bounds)

    def clocks(self, where: Where | None = None, reference: str | None = None) -> Frame:
        """Raises: UseError, as the clocks of a corrected run are not those of its peers."""
        raise UseError(AS_REPORTED)

    @property
    def note(self) -> str:
        """What is corrected, as text for users."""
        widths = pc.subtract(self.bounds["offset_us_max"], self.bounds["offset_us_min"]).drop_null()
        error_us = ((pc.max(widths).as_py() or 0) + 1) // 2
        within = f", each to within {duration(error_us)}" if error_us else ""
        left = len(self.bounds) - len(widths)
        as_reported = f"; delays to or from the other {left} are as reported" if left else ""
        return (
            f"clocks of {len(widths)} of {amount(len(self.bounds), 'peer')} corrected, against "
            f"that of {self.bounds['reference'][0]}{within}{as_reported}"
        )
