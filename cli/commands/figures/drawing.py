"""Options of `vizpub plot`: what a figure or a film shows, and the pace and size of a film."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from vizpub.analytics.options import FILM_FPS, FILM_SIZE, LEGENDS, STYLES
from vizpub.cli.completion import (
    KINDS,
    LAYOUTS,
    complete_attributes,
    complete_kinds,
    complete_layers,
    complete_layouts,
    complete_peers,
    complete_runs,
    complete_topics,
)
from vizpub.cli.options import Options, drop_defaults, given_options
from vizpub.model.errors import UnknownName, UseError

if TYPE_CHECKING:
    from vizpub.analytics.figures.styles import FigureOptions
    from vizpub.questions.run import Run

METRIC_KINDS = ("series", "ecdf", "ccdf", "density")
"""Kinds that draw columns of metrics."""
_DISTRIBUTIONS = METRIC_KINDS[1:]
FILMS = {"overlay": "film of an overlay", "tree": "film of a tree"}
"""Kinds that a film can show, and the names of such films in `APPLIES`."""
_FILMS = tuple(FILMS.values())
_LINES = (*METRIC_KINDS, "survival", "coverage")
_ALL = (*KINDS, *_FILMS)
APPLIES = {
    "METRIC|MESSAGE": (*METRIC_KINDS, "coverage", "tree", "overlay", "film of a tree"),
    "--with": _LINES,
    "--peer": (*_LINES, "overlay"),
    "--topic": (*_LINES, "overlay", *_FILMS),
    "--from": (*_LINES, "film of an overlay"),
    "--to": (*_LINES, "film of an overlay"),
    "--by": (*METRIC_KINDS, "survival", "overlay"),
    "--at": (*_DISTRIBUTIONS, "overlay"),
    "--layers": (*METRIC_KINDS, "survival", "overlay", "film of an overlay"),
    "--correct-clocks": (*METRIC_KINDS, "coverage"),
    "--layout": ("tree", "overlay", *_FILMS),
    "--hops": ("tree",),
    "--title": KINDS,
    "--xlabel": _LINES,
    "--ylabel": _LINES,
    "--legend": _LINES,
    "--size": _ALL,
    "--style": _ALL,
    "--fps": _FILMS,
    "--seconds": _FILMS,
}
"""The kinds of figures and films that each option and argument of `vizpub plot` applies to."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(?:x(\d+(?:\.\d+)?))?(px|in|cm)?")
_INCHES = {"in": 1.0, "cm": 1 / 2.54}
_LEAST, _MOST = 100, 9999
"""Pixels of a side."""


def check_options(ctx: typer.Context, kind: str) -> None:
    """Check that all that is given applies to a kind of figure or film. Raises: UseError."""
    for option in given_options(ctx):
        if kind not in APPLIES.get(option, (kind,)):
            drawn = f"a {kind}" if kind in _FILMS else f"--kind {kind}"
            applies = ", ".join(APPLIES[option])
            raise UseError(f"{option} does not apply to {drawn}; it applies to: {applies}")


def drop_others(
    ctx: typer.Context, kind: str, options: Options, metrics: Sequence[str] = ()
) -> Options:
    """The options without defaults that do not apply to a kind of figure or film, or to what the
    command line has.
    """
    given = {*given_options(ctx)}
    others = [option for option, kinds in APPLIES.items() if kind not in kinds]
    if given & {"--from", "--to"}:
        others += ["--at"]
    if given & {"--with", "--peer", "--at"} or (kind == "overlay" and metrics):
        others += ["--by"]
    if any(name.startswith("gauges/") for name in metrics):
        others += ["--topic", "--layers"]
    if any("/" in name and not name.startswith("gauges/") for name in metrics):
        others += ["--by", "--at", "--layers"]  # of control messages and of arrivals
    return drop_defaults(ctx, options, *others)


def _help(text: str, option: str) -> str:
    """The help of an option, with the kinds that it applies to."""
    kinds = APPLIES[option]
    if kinds == _ALL:
        return text
    shown = [kind for kind in kinds if kind not in _FILMS]
    shown += ["films"] if {*_FILMS} <= {*kinds} else [kind for kind in kinds if kind in _FILMS]
    return f"{text} For: {', '.join(shown)}."


@dataclass(frozen=True)
class Drawing:
    """Kind and subject of the figure."""

    kind: Annotated[
        str,
        typer.Option(
            metavar="|".join(KINDS),
            help="Time series, distribution, lifetimes, dissemination, or peers and their links.",
            autocompletion=complete_kinds,
        ),
    ] = "series"
    more_runs: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="RUN",
            help=_help("Draw this run as well; repeatable, a colour each.", "--with"),
            autocompletion=complete_runs,
        ),
    ] = None
    peer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PEER",
            help=_help(
                "Metrics, or messages, of this peer; repeatable, one line each. An overlay is "
                "coloured by the hops from it.",
                "--peer",
            ),
            autocompletion=complete_peers,
        ),
    ] = None
    topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help=_help("Metrics, messages or the part of the overlay of this topic.", "--topic"),
            autocompletion=complete_topics,
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help=_help("Interval, or a time such as 12.5s; several: 5,9,…", "--at"),
        ),
    ] = None
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help=_help("Include only links of these layers.", "--layers"),
            autocompletion=complete_layers,
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help=_help("A line or colour for each group of peers with the same attribute.", "--by"),
            autocompletion=complete_attributes,
        ),
    ] = None
    correct_clocks: Annotated[
        bool,
        typer.Option(
            "--correct-clocks",
            help=_help(
                "Correct delays by the offsets of clocks that messages bound on both sides.",
                "--correct-clocks",
            ),
        ),
    ] = False
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(LAYOUTS),
            help=_help(
                "A tree has ring (default) or layers; an overlay force (default for up to 1,000 "
                "peers) or ring.",
                "--layout",
            ),
            autocompletion=complete_layouts,
        ),
    ] = None
    hops: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help=_help("Draw only up to this hop.", "--hops")),
    ] = None

    @property
    def peers(self) -> Sequence[str | None]:
        """The peers with a line each; [null] = one line for all."""
        return self.peer or [None]

    @property
    def subject(self) -> str:
        """The topic or peer for the title; several peers are in the legend."""
        return self.topic or (self.peers[0] if len(self.peers) == 1 else None) or ""


@dataclass(frozen=True)
class FilmOptions:
    """The pace of a film."""

    fps: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=0.1,
            max=60,
            help=_help(f"Frames per second (default: {FILM_FPS:g}).", "--fps"),
        ),
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=0.1,
            max=3600,
            help=_help(
                "Length (of each message), with frames at equal times of the run; default: a "
                "frame per interval or hop.",
                "--seconds",
            ),
        ),
    ] = None

    @property
    def frames_per_second(self) -> float:
        """The pace of the film."""
        return self.fps or FILM_FPS

    @property
    def frames(self) -> int | None:
        """The number of frames at equal times; null = one per interval or hop."""
        return None if self.seconds is None else math.ceil(self.seconds * self.frames_per_second)


@dataclass(frozen=True)
class FigureLook:
    """Title, size and style of figures, also of those that other commands draw."""

    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of a figure; '' = none.")
    ] = None
    size: Annotated[
        str | None,
        typer.Option(
            metavar="W[xH]",
            help="Width and height: 3.5in, 9x6cm, or pixels, 1280x720.",
        ),
    ] = None
    style: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(STYLES),
            help="A narrow figure for a column, large text, or a dark ground.",
        ),
    ] = None

    def figure_options(self) -> FigureOptions:
        """The options as figures take them. Raises: UseError, UnknownName."""
        from vizpub.analytics.figures.styles import FigureOptions

        options = FigureOptions(self.style, title=self.title)
        width, height = self._inches(options.resolution)
        return replace(options, width=width, height=height)

    def pixels(self) -> tuple[int, int]:
        """Width and height of a film, each even, as video codecs want them. Raises: UseError."""
        from vizpub.analytics.figures.styles import FigureOptions

        resolution = FigureOptions(self.style).resolution
        width, height = self._inches(resolution)
        if width is None:
            return FILM_SIZE
        height = height or width * FILM_SIZE[1] / FILM_SIZE[0]
        pixels = (round(side * resolution) // 2 * 2 for side in (width, height))
        return next(pixels), next(pixels)

    def _inches(self, resolution: int) -> tuple[float | None, float | None]:
        """Width and height; null = not given. Raises: UseError."""
        if self.size is None:
            return None, None
        match = _SIZE.fullmatch(self.size)
        sides = [float(side) for side in match.groups()[:2] if side] if match else []
        inches = [side * _INCHES.get(match[3] if match else "", 1 / resolution) for side in sides]
        if not inches or not all(_LEAST <= side * resolution <= _MOST for side in inches):
            raise UseError(
                f"--size {self.size}: give inches (3.5in, 3.5x2.6in), centimetres (9cm) or pixels "
                f"(1280x720); a side has {_LEAST} to {_MOST} pixels, {resolution} to the inch"
            )
        return inches[0], inches[1] if len(inches) > 1 else None


@dataclass(frozen=True)
class Look(FigureLook):
    """All of its look: labels and legend, too."""

    xlabel: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help=_help("Label of the axis below.", "--xlabel")),
    ] = None
    ylabel: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help=_help("Label of the axis on the left.", "--ylabel")),
    ] = None
    legend: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help=_help("Place of the legend: 'upper left', …, best, outside, none.", "--legend"),
        ),
    ] = None

    def figure_options(self) -> FigureOptions:
        """The options as figures take them. Raises: UseError, UnknownName."""
        if self.legend not in (None, *LEGENDS):
            raise UnknownName("place of a legend", self.legend or "", LEGENDS)
        return super().figure_options()


@dataclass(frozen=True)
class PlotOptions(FilmOptions, Look, Drawing):
    """All options of the command but the window."""


def title_of(runs: Sequence[Run], *about: str) -> str:
    """Return the name of the run, unless the legend has those of several, and the subject."""
    names = [run.facts.name for run in runs] if len(runs) == 1 else []
    return ": ".join([*names, *filter(None, about)])
