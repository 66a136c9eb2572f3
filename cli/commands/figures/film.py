"""Films of `vizpub plot`: an overlay by intervals, a message by hops, or either by time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vizpub.cli.commands.figures.drawing import PlotOptions
from vizpub.cli.options import Window, comma_list
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import replaced_file
from vizpub.model.errors import OutOfRange, UseError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from vizpub.questions.run import Run

_MOST = {"gif": 2_000, "webm": 50_000, "mp4": 50_000}
"""Frames at most; those of a GIF are all in memory until it is written."""


@dataclass(frozen=True)
class Scenes:
    """The figures of a film in order, and their number."""

    count: int
    figures: Iterator[Figure]


def write_scenes(
    scenes: Scenes, file: Path, form: str, options: PlotOptions, settings: Settings
) -> None:
    """Write a film and show its progress. Raises: UseError, also for too many frames."""
    from vizpub.analytics.figures import FigureOptions, Film, figure_style, write_film
    from vizpub.analytics.figures.styles import STANDARD_WIDTH

    if scenes.count > _MOST[form]:
        raise UseError(
            f"{file}: {scenes.count:,} frames, more than the {_MOST[form]:,} of a .{form}; shorten "
            "it with --seconds, or choose fewer messages or intervals"
        )
    film = Film(form, options.frames_per_second, *options.pixels())
    with settings.progress() as progress, replaced_file(file) as place:

        def count_frames() -> Iterator[Figure]:
            for number, figure in enumerate(scenes.figures):
                progress("frames", number, scenes.count)
                yield figure

        with figure_style(FigureOptions(options.style, STANDARD_WIDTH)):
            write_film(count_frames(), place, film)
        progress("frames", scenes.count, scenes.count)
    settings.say(f"wrote {file}: {scenes.count} frames, {scenes.count / film.fps:.1f} s")


def choose_scenes(
    run: Run, drawing: PlotOptions, window: Window, messages: Sequence[str]
) -> Scenes:
    """The figures of a film. Raises: UseError unless messages are named or have a topic."""
    if drawing.kind == "overlay":
        return overlay_scenes(
            run, window, drawing.frames, topic=drawing.topic, layers=comma_list(drawing.layers),
            layout=drawing.layout,
        )  # fmt: skip
    if bool(messages) == (drawing.topic is not None):
        raise UseError("name the messages of a film, or its --topic")
    names = messages or topic_messages(run, drawing.topic or "")
    return message_scenes(run, names, drawing.frames, layout=drawing.layout)


def overlay_scenes(
    run: Run,
    window: Window,
    frames: int | None,
    *,
    topic: str | None,
    layers: Sequence[str] | None,
    layout: str | None,
) -> Scenes:
    """The overlay at the end of each interval of the window, or at so many equal times in it.

    Peers keep their places, those of `vizpub explore`.

    Raises: OutOfRange if the run has no interval in the window; UseError, UnknownName.
    """
    import numpy as np

    from vizpub.analytics.figures import overlay_snapshot
    from vizpub.explorer.history import History
    from vizpub.explorer.places import places
    from vizpub.questions.snapshots import snapshot

    clock = run.clock
    first, last = clock.clip(*window.intervals(clock, run.facts.epoch))
    ticks = [clock.sampling_tick(interval) for interval in range(first, last + 1)]
    if not ticks:
        raise OutOfRange("window", f"{first} to {last}", clock.describe_range())
    if frames is not None:
        begin, end = first * clock.ticks_per_interval, clock.sampling_tick(last)
        ticks = [int(tick) for tick in np.linspace(begin, end, frames).round()]
    layout = layout or "force"
    positions = places(History(run), "force") if layout == "force" else None
    subject = [f"topic {topic}"] if topic else []
    subject += [f"layer {' and '.join(layers)}"] if layers else []

    def draw(tick: int) -> Figure:
        peers, links = snapshot(run, tick, topic, layers)
        title = ", ".join([run.facts.name, *subject, clock.describe(tick)])
        return overlay_snapshot(
            peers, links, len(run.peers), title, layout=layout, places=positions
        )

    return Scenes(len(ticks), map(draw, ticks))


def message_scenes(
    run: Run, messages: Sequence[str], frames: int | None, *, layout: str | None
) -> Scenes:
    """Each message hop by hop, or at so many equal times from its publication to its last copy.

    The last frame of a message also shows the peers that it missed.

    Raises: UnknownName, UseError where receptions, or the times of the frames, are unknown.
    """
    import numpy as np
    import pyarrow.compute as pc

    from vizpub.analytics.figures import dissemination_tree
    from vizpub.model.run import TIMES
    from vizpub.model.wording import shorten
    from vizpub.questions.snapshots import spread

    draws = []
    for message in messages:
        peers, copies = spread(run, message)
        title = f"{run.facts.name}: message {shorten(message, 40)}"
        draw = partial(dissemination_tree, peers, copies, layout=layout or "ring")
        if frames is None:
            last = pc.max(peers["hop"]).as_py() or 0
            draws += [partial(draw, f"{title}, hop {hop}", hops=hop) for hop in range(last + 1)]
        else:
            run.facts.check_known(TIMES)
            begin, end = _time_span(run, message, copies["time_us"])
            for time in np.linspace(begin, end, frames)[:-1].round().astype(int).tolist():
                delay = f"{(time - begin) / 1000:,.1f} ms"
                draws.append(partial(draw, f"{title}, after {delay}", until_us=time))
        draws.append(partial(draw, f"{title}, all copies"))
    return Scenes(len(draws), (draw() for draw in draws))


def _time_span(run: Run, message: str, times: pa.ChunkedArray) -> tuple[int, int]:
    """The times of a message's publication, or its first copy where that is unknown, and last copy.

    Raises: UseError if no time is known.
    """
    import pyarrow.compute as pc

    published = run.publication(run.message_index(message))["time_us"]
    arrivals = pc.min_max(times).as_py()
    begin = arrivals["min"] if published is None else published
    if begin is None:
        raise UseError(f"no time is known of message {message}; leave out --seconds")
    return begin, max(begin, begin if arrivals["max"] is None else arrivals["max"])


def topic_messages(run: Run, topic: str) -> list[str]:
    """The names of a topic's messages, in order. Raises: UnknownName, UseError if it has none."""
    import pyarrow.compute as pc

    of_topic = pc.field("topic") == run.topic_index(topic)
    names: list[str] = run.stored.read("publications", ["name"], of_topic)["name"].to_pylist()
    if not names:
        raise UseError(f"topic {topic} has no message")
    return names
