"""Numbers that peers report of their own, as a table with a column for each."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.errors import UnknownName
from vizpub.questions.names import NAMED
from vizpub.runstore.store import StoredRun

_KEY = ["interval", "peer"]


def gauges(
    stored: StoredRun, names: Sequence[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """interval, peer and the named gauges (null = all that the run has), null where a peer did not
    report it then; sorted by interval and peer.

    Raises: UnknownName for a gauge that the run does not have.
    """
    available = checked_gauges(stored, names or ())
    chosen = names or available
    condition = pc.field("gauge").isin(chosen)
    rows = stored.read("gauges", where=condition if where is None else condition & where)
    table = rows.select(_KEY).group_by(_KEY).aggregate([])
    for name in chosen:
        values = rows.filter(pc.field("gauge") == name).select([*_KEY, "value"])
        table = table.join(values.rename_columns([*_KEY, gauge_column(name)]), _KEY)
    return table.sort_by([(name, "ascending") for name in _KEY])


def gauge_column(name: str) -> str:
    """The column of a gauge: its name, with an underscore where another column has the name."""
    is_taken = name in _KEY or name.removesuffix("_name") in NAMED
    return f"{name}_" if is_taken else name


def checked_gauges(stored: StoredRun, names: Sequence[str]) -> list[str]:
    """All gauges of the run. Raises: UnknownName if one of the names is none of them."""
    available: list[str] = sorted(pc.unique(stored.read("gauges", ["gauge"])["gauge"]).to_pylist())
    for name in names:
        if name not in available:
            raise UnknownName("gauge", name, available)
    return available
