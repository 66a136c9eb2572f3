"""Figures of `vizpub plot` that show one message, or the overlay at some times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vizpub.cli.commands.figures.drawing import Drawing, title_of
from vizpub.cli.commands.figures.grouped import colour_groups
from vizpub.cli.options import comma_list
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from vizpub.questions.run import Run

ONE_SCALE = "metrics, and the hops from a peer, colour an overlay at one time, without --by"
TWO_SCALES = (
    "an overlay shows two numbers of its peers, by colour and by size: two metrics, or --peer and "
    "a metric"
)
ONE_MESSAGE = "name exactly one message to draw as a tree"


def _tree(run: Run, drawing: Drawing, messages: Sequence[str]) -> tuple[pa.Table, Figure]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from vizpub.analytics.figures import dissemination_tree
    from vizpub.model.wording import shorten
    from vizpub.questions.snapshots import spread

    if len(messages) != 1:
        raise UseError(ONE_MESSAGE)
    peers, copies = spread(run, messages[0])
    up_to = "" if drawing.hops is None else f"up to hop {drawing.hops}"
    title = title_of([run], f"message {shorten(messages[0], 40)}", up_to)
    figure = dissemination_tree(
        peers, copies, title, layout=drawing.layout or "ring", hops=drawing.hops
    )
    missed = peers.filter(pc.field("role") == "missed").select(["peer", "peer_name"])
    return pa.concat_tables([copies, missed], promote_options="default"), figure


def _overlay(run: Run, drawing: Drawing, metrics: Sequence[str]) -> tuple[pa.Table, Figure]:
    import pyarrow as pa

    from vizpub.analytics.figures import MOST_BY_FORCE, overlay_snapshot, overlay_snapshots
    from vizpub.questions.snapshots import snapshot

    layers = comma_list(drawing.layers)
    ticks = [run.tick_at(text) for text in dict.fromkeys(comma_list(drawing.at) or ("last",))]
    snapshots = {tick: snapshot(run, tick, drawing.topic, layers) for tick in ticks}
    snapshots = colour_groups(run, snapshots, drawing.by)
    if metrics or drawing.peer:
        if len(ticks) > 1 or drawing.by:
            raise UseError(ONE_SCALE)
        snapshots[ticks[0]] = _with_scales(run, ticks[0], snapshots[ticks[0]], drawing, metrics)
    topic = [f"topic {drawing.topic}"] if drawing.topic else []
    shown = [f"layer {' and '.join(layers)}"] if layers else []
    title, size = [run.facts.name, *topic, *shown], len(run.peers)
    drawn = size if len(ticks) > 1 else snapshots[ticks[0]][0].num_rows
    layout = drawing.layout or ("force" if drawn <= MOST_BY_FORCE else "ring")
    if len(ticks) == 1:
        (peers, links), when = snapshots[ticks[0]], run.clock.describe(ticks[0])
        heading = ", ".join([*title, when])
        return _with_numbers(peers, links), overlay_snapshot(
            peers, links, size, heading, layout=layout
        )
    by_time = {run.clock.describe(tick): snapshots[tick] for tick in ticks}
    rows = [
        links.add_column(
            0, "interval", pa.array([run.clock.interval_of(tick)] * len(links), pa.int32())
        )
        for tick, (_, links) in snapshots.items()
    ]
    return pa.concat_tables(rows), overlay_snapshots(by_time, size, ", ".join(title), layout=layout)


def _with_scales(
    run: Run,
    tick: int,
    snapshot: tuple[pa.Table, pa.Table],
    drawing: Drawing,
    metrics: Sequence[str],
) -> tuple[pa.Table, pa.Table]:
    """The snapshot, whose peers have numbers for their colour (the hops from a peer, otherwise the
    first metric) and area (the next metric). Raises: UseError, UnknownName.
    """
    import pyarrow as pa

    from vizpub.model.wording import shorten

    peers, links = snapshot
    scales: list[tuple[str, str, dict[int, float | None]]] = []
    """Each with its name in the CSV and in the figure."""
    if len(drawing.peer or ()) + len(metrics) > 2:
        raise UseError(TWO_SCALES)
    for name in drawing.peer or ():
        hops = hops_from(run.peer_index(name), links)
        scales.append(("hops", f"hops from {shorten(name)}", hops))
    if metrics:
        from vizpub.analytics.comparison.layers import RunOfLayers
        from vizpub.questions.run import Where

        layers, interval = comma_list(drawing.layers), run.clock.interval_of(tick)
        measured = RunOfLayers.of(run, layers) if layers else run
        rows = measured.metrics("peers", metrics, Where(interval, interval)).to_arrow()
        numbers = {name: number for number, name in enumerate(run.peers)}
        of = [numbers[name] for name in rows["peer_name"].to_pylist()]
        scales += [
            (name, name, dict(zip(of, rows[name].cast(pa.float64()).to_pylist(), strict=True)))
            for name in metrics
        ]
    for column, (key, name, values) in zip(("shade", "weight"), scales, strict=False):
        of_peers = [values.get(peer) for peer in peers["peer"].to_pylist()]
        field = pa.field(column, pa.float64(), metadata={"name": name, "key": key})
        peers = peers.append_column(field, pa.array(of_peers, pa.float64()))
    return peers, links


def _with_numbers(peers: pa.Table, links: pa.Table) -> pa.Table:
    """The links with the numbers of both ends that the figure shows as colour and area. Peers
    without a link come last then, without a dst.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    shown = [name for name in ("shade", "weight") if name in peers.column_names]
    if not shown:
        return links
    linked = pc.is_in(peers["peer"], pa.chunked_array([*links["src"].chunks, *links["dst"].chunks]))
    alone = peers.filter(pc.invert(linked)).select(["peer", "peer_name"])
    alone = alone.rename_columns(["src", "src_name"])
    rows = pa.concat_tables([links, alone], promote_options="default")
    for name in shown:
        key = peers.schema.field(name).metadata[b"key"].decode()
        values = dict(zip(peers["peer"].to_pylist(), peers[name].to_pylist(), strict=True))
        for end in ("src", "dst"):
            of_ends = [values.get(peer) for peer in rows[end].to_pylist()]
            rows = rows.append_column(f"{end}_{key}", pa.array(of_ends, pa.float64()))
    return rows


def hops_from(source: int, links: pa.Table) -> dict[int, float | None]:
    """The links on a shortest path from a peer to each that it reaches."""
    following: dict[int, list[int]] = defaultdict(list)
    for src, dst in zip(links["src"].to_pylist(), links["dst"].to_pylist(), strict=True):
        following[src].append(dst)
    hops: dict[int, float | None] = {source: 0}
    level, distance = [source], 0
    while level:
        distance += 1
        level = [*{peer for near in level for peer in following[near]}.difference(hops)]
        hops |= dict.fromkeys(level, distance)
    return hops


PICTURES = {"overlay": _overlay, "tree": _tree}
