"""Figures of `vizpub plot --by`: a line for each group of peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vizpub.cli.commands.everyday.drawing import Drawing
from vizpub.cli.options import Window, comma_list
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from vizpub.questions.run import Run

UNKNOWN = "unknown"
"""The name of the group of peers without a value."""


def draw_groups(
    runs: Sequence[Run], drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    """Draw metrics of the groups of one run: a series of each, or the distribution over its peers.

    Raises: UseError for several runs, and for options that do not apply; as Run.metrics.
    """
    from vizpub.analytics.figures import density, distribution, series
    from vizpub.questions.mixing import ASSORTATIVITY_COLUMNS
    from vizpub.questions.run import Where

    by = drawing.by or ""
    if len(runs) > 1 or drawing.peer or drawing.at:
        raise UseError("--by draws the groups of one run: leave out --with, --peer and --at")
    [run] = runs
    where = Where(*window.intervals(run.clock, run.facts.epoch), None, drawing.topic)
    title = ": ".join([run.facts.name, *filter(None, [drawing.topic]), f"by {by}"])
    if drawing.kind == "series" and {*metrics} <= {*ASSORTATIVITY_COLUMNS}:
        rows = run.assortativity(by, where, comma_list(drawing.layers)).to_arrow()
        return rows, series(rows, metrics, title, by="layer")
    if drawing.kind == "series":
        table = "topics" if drawing.topic else "peers"
        rows = _name_groups(run.metrics(table, metrics, where, by=by).to_arrow())
        columns = [name if name in rows.column_names else f"{name}_mean" for name in metrics]
        return rows, series(rows, columns, title, by="group")
    rows = _name_groups(run.metrics_with_groups(metrics, by, where).to_arrow())
    if drawing.kind == "density":
        return rows, density(rows, metrics, title, by="group")
    is_ccdf = drawing.kind == "ccdf"
    return rows, distribution(rows, metrics, title, complementary=is_ccdf, by="group")


def colour_groups(
    run: Run, snapshots: dict[int, tuple[pa.Table, pa.Table]], by: str | None
) -> dict[int, tuple[pa.Table, pa.Table]]:
    """Add the column `group` to the peers of snapshots by tick: a dictionary of all groups, so that
    each has its colour at all times. Nothing is added where `by` is null.

    Raises: UnknownName, UseError for a run without attributes.
    """
    import pyarrow as pa

    from vizpub.questions.groups import values_at

    if by is None:
        return snapshots
    values = {tick: values_at(run, by, tick) for tick in snapshots}
    names = sorted({name for of in values.values() for name in of.values()})
    places = {name: place for place, name in enumerate(names)}
    grouped = {}
    for tick, (peers, links) in snapshots.items():
        of_peers = (values[tick].get(peer) for peer in peers["peer"].to_pylist())
        indices = pa.array([places.get(name or "") for name in of_peers], pa.int32())
        groups = pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))
        grouped[tick] = peers.append_column("group", groups), links
    return grouped


def _name_groups(rows: pa.Table) -> pa.Table:
    """Name the group of unknown value, and put groups in order."""
    import pyarrow.compute as pc

    place = rows.column_names.index("group")
    rows = rows.sort_by([("group", "ascending"), ("interval", "ascending")])  # null is last
    return rows.set_column(place, "group", pc.fill_null(rows["group"], UNKNOWN))
