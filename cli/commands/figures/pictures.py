"""Figures of `vizpub plot` that show one message, or the overlay at some times."""

from __future__ import annotations

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


def _overlay(run: Run, drawing: Drawing, _metrics: Sequence[str]) -> tuple[pa.Table, Figure]:
    import pyarrow as pa

    from vizpub.analytics.figures import MOST_BY_FORCE, overlay_snapshot, overlay_snapshots
    from vizpub.questions.snapshots import snapshot

    layers = comma_list(drawing.layers)
    ticks = [run.tick_at(text) for text in dict.fromkeys(comma_list(drawing.at) or ("last",))]
    snapshots = {tick: snapshot(run, tick, drawing.topic, layers) for tick in ticks}
    snapshots = colour_groups(run, snapshots, drawing.by)
    topic = [f"topic {drawing.topic}"] if drawing.topic else []
    shown = [f"layer {' and '.join(layers)}"] if layers else []
    title, size = [run.facts.name, *topic, *shown], len(run.peers)
    drawn = size if len(ticks) > 1 else snapshots[ticks[0]][0].num_rows
    layout = drawing.layout or ("force" if drawn <= MOST_BY_FORCE else "ring")
    if len(ticks) == 1:
        (peers, links), when = snapshots[ticks[0]], run.clock.describe(ticks[0])
        heading = ", ".join([*title, when])
        return links, overlay_snapshot(peers, links, size, heading, layout=layout)
    by_time = {run.clock.describe(tick): snapshots[tick] for tick in ticks}
    rows = [
        links.add_column(0, "interval", pa.array([run.clock.interval_of(tick)] * len(links)))
        for tick, (_, links) in snapshots.items()
    ]
    return pa.concat_tables(rows), overlay_snapshots(by_time, size, ", ".join(title), layout=layout)


PICTURES = {"overlay": _overlay, "tree": _tree}
