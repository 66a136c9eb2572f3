"""Figures of `vizpub plot` with a line for each group of peers or, of churn, for each layer or, of
control messages, for each kind; and figures of when copies of messages arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vizpub.cli.commands.figures.drawing import Drawing, title_of
from vizpub.cli.options import Window, comma_list
from vizpub.model.errors import UnknownName, UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from vizpub.questions.run import Run

SURVIVAL = "survival"
"""The kind of figure of how long links last."""
CONTROL_SERIES = "control by kind is drawn as a series of one run, without other metrics and --by"
ARRIVALS_ALONE = (
    "arrivals, such as duplicates/with_duplicates, are drawn of one table, one run and one peer, "
    "without --by, --at and --layers"
)
_CONTROL = "control/"
_BY = {"series": "interval"}
"""What duplicates and bytes are counted by in kinds of figures; in others by message."""
UNKNOWN = "unknown"
"""The name of the group of peers without a value."""


def draw_groups(
    runs: Sequence[Run], drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    """Draw metrics of the groups of one run: a series of each, or the distribution over its peers;
    or control messages by kind.

    Raises: UseError for several runs, and for options that do not apply; as Run.metrics.
    """
    from vizpub.analytics.figures import density, distribution, series
    from vizpub.questions.attributes.mixing import ASSORTATIVITY_COLUMNS
    from vizpub.questions.run import Where

    if are_of_control(metrics):
        return _draw_control(runs, drawing, window, metrics)
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


def shows_churn(kind: str, metrics: Sequence[str]) -> bool:
    """Return True if the figure is of how long links last, or how neighbourhoods change."""
    from vizpub.questions.churn.turnover import TURNOVER_COLUMNS

    return kind == SURVIVAL or (kind == "series" and {*metrics} <= {*TURNOVER_COLUMNS})


def draw_churn(
    runs: Sequence[Run], drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    """Draw survival, or columns of turnover: a line for each layer, topic or group of each run.

    Raises: UseError for several peers; as Run.survival and Run.turnover.
    """
    import pyarrow as pa

    from vizpub.analytics.figures import colours_of, series, survival
    from vizpub.questions.run import Where

    if len(drawing.peers) > 1:
        raise UseError("a figure of lifetimes or turnover is of one --peer, or of all")
    layers, parts = comma_list(drawing.layers), []
    systems: dict[str, str] = {}
    for run in runs:
        ends = window.intervals(run.clock, run.facts.epoch)
        answer = run.survival if drawing.kind == SURVIVAL else run.turnover
        rows = answer(drawing.by, Where(*ends, drawing.peers[0], drawing.topic), layers).to_arrow()
        name = [] if len(runs) == 1 else [run.facts.name]
        lines = [" ".join([*name, *_line_of(row, drawing.by)]) for row in rows.to_pylist()]
        systems |= dict.fromkeys(lines, run.facts.protocol or run.facts.name)
        rows = rows.append_column("line", pa.array(lines, pa.string()))
        parts.append(
            rows.add_column(0, "run", pa.array(name * len(rows), pa.string())) if name else rows
        )
    rows, title = pa.concat_tables(parts), title_of(runs, drawing.subject)
    chosen = colours_of([*systems], of=[*systems.values()]) if len(runs) > 1 else None
    if drawing.kind == SURVIVAL:
        return rows, survival(rows, title, by="line", chosen=chosen)
    return rows, series(rows, metrics, title, by="line", chosen=chosen)


def _line_of(row: dict[str, Any], by: str | None) -> Iterator[str]:
    """The words that say what a row of churn is of: layer or table, and topic or group."""
    yield row["layer"] or row["of"]
    if by == "topic":
        yield row["topic_name"] or ""
    elif by is not None:
        yield UNKNOWN if row["group"] is None else row["group"]


def are_of_control(metrics: Sequence[str]) -> bool:
    """Return True if some are columns of control messages by kind, such as control/ids_sent."""
    return any(name.startswith(_CONTROL) for name in metrics)


def _draw_control(
    runs: Sequence[Run], drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    """Draw control messages over the intervals, a line for each kind. Raises: as Run.control."""
    from vizpub.analytics.figures import series
    from vizpub.questions.run import Where

    columns = [name.removeprefix(_CONTROL) for name in metrics if name.startswith(_CONTROL)]
    is_other = drawing.kind != "series" or drawing.by or len(runs) > 1 or len(drawing.peers) > 1
    if is_other or len(columns) < len(metrics):
        raise UseError(CONTROL_SERIES)
    [run], [peer] = runs, drawing.peers
    where = Where(*window.intervals(run.clock, run.facts.epoch), peer, drawing.topic)
    rows = run.control(columns, where).to_arrow()
    title = ": ".join(filter(None, [run.facts.name, peer, drawing.topic, "control messages"]))
    return rows, series(rows, columns, title, by="kind")


def are_of_arrivals(metrics: Sequence[str]) -> bool:
    """Return True if some are columns of tables of arrivals, such as clocks/offset_us_min."""
    from vizpub.questions.arrivals import ARRIVALS

    return any(name.partition("/")[0] in ARRIVALS and "/" in name for name in metrics)


def draw_arrivals(
    runs: Sequence[Run], drawing: Drawing, window: Window, metrics: Sequence[str]
) -> tuple[pa.Table, Figure]:
    """Draw duplicates or bytes over the intervals of publication; or how these, and what other
    tables of arrivals have, are distributed over messages or, of clocks, over peers.

    Raises: UseError, UnknownName for a column; as the table's method of Run.
    """
    from vizpub.analytics.figures import density, distribution, series
    from vizpub.questions.run import Where

    table, *others = {name.partition("/")[0] for name in metrics}
    chosen = drawing.by, drawing.at, drawing.layers, runs[1:], drawing.peers[1:]
    if others or any(chosen):
        raise UseError(ARRIVALS_ALONE)
    [run], [peer] = runs, drawing.peers
    where = Where(*window.intervals(run.clock, run.facts.epoch), peer, drawing.topic)
    if table in ("duplicates", "amplification"):
        rows = getattr(run, table)(_BY.get(drawing.kind, "message"), where).to_arrow()
    elif drawing.kind == "series":
        raise UseError(f"{table} is no series: give --kind ecdf, ccdf or density")
    else:
        rows = getattr(run, table)(where).to_arrow()
    columns = [name.partition("/")[2] for name in metrics]
    for name in columns:
        if name not in rows.column_names:
            raise UnknownName(f"column of {table}", name, rows.column_names)
    title = ": ".join(filter(None, [run.facts.name, peer, drawing.topic, table]))
    if drawing.kind == "series":
        return rows, series(rows, columns, title)
    if drawing.kind == "density":
        return rows, density(rows, columns, title)
    return rows, distribution(rows, columns, title, complementary=drawing.kind == "ccdf")


def colour_groups(
    run: Run, snapshots: dict[int, tuple[pa.Table, pa.Table]], by: str | None
) -> dict[int, tuple[pa.Table, pa.Table]]:
    """Add the column `group` to the peers of snapshots by tick: a dictionary of all groups, so that
    each has its colour at all times. Nothing is added where `by` is null.

    Raises: UnknownName, UseError for a run without attributes.
    """
    import pyarrow as pa

    from vizpub.questions.attributes.groups import values_at

    if by is None:
        return snapshots
    values = {tick: values_at(run, by, tick) for tick in snapshots}
    names = sorted({name for of in values.values() for name in of.values()})
    places = {name: place for place, name in enumerate(names)}
    grouped = {}
    for tick, (peers, links) in snapshots.items():
        of_peers = (values[tick].get(peer) for peer in peers["peer"].to_pylist())
        indices = pa.array((name and places[name] for name in of_peers), pa.int32())
        groups = pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))
        grouped[tick] = peers.append_column("group", groups), links
    return grouped


def _name_groups(rows: pa.Table) -> pa.Table:
    """Name the group of unknown value, and put groups in order."""
    import pyarrow.compute as pc

    place = rows.column_names.index("group")
    rows = rows.sort_by([("group", "ascending"), ("interval", "ascending")])  # null is last
    return rows.set_column(place, "group", pc.fill_null(rows["group"], UNKNOWN))
