"""Options of a measurement that a run can keep."""

from __future__ import annotations

import json
from math import inf, nan

import pytest

from tests.support.words import naming
from vizpub.analytics.options import ALWAYS_EXACT, Measures
from vizpub.ingest.measures.choice import MeasurementOptions
from vizpub.model.errors import UseError


@pytest.mark.parametrize("limit", [inf, -inf, nan])
def test_limit_that_no_run_can_keep_is_refused(limit: float) -> None:
    with pytest.raises(UseError, match=naming("--max-edge-visits", f"{ALWAYS_EXACT:g}")):
        MeasurementOptions(measures=Measures(max_edge_visits=limit))


def test_limit_that_samples_nothing_is_kept_and_restored() -> None:
    chosen = MeasurementOptions(measures=Measures(max_edge_visits=ALWAYS_EXACT))
    kept = json.loads(json.dumps(chosen.options, allow_nan=False))
    assert MeasurementOptions.of(kept, ()) == chosen
