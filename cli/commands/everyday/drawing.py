"""Options of `vizpub plot`: what a figure or a film shows, and the pace and size of a film."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from vizpub.cli.completion import (
    KINDS,
    LAYOUTS,
    complete_kinds,
    complete_layouts,
    complete_peers,
    complete_topics,
)
from vizpub.cli.options import Layers
from vizpub.model.errors import UseError

ONLY_FILMS = "is for films (.gif, .webm, .mp4)"
_FPS = 8.0
_SIZE = re.compile(r"(\d{3,4})x(\d{3,4})")


@dataclass(frozen=True)
class Drawing:
    """Kind and subject of the figure."""

    kind: Annotated[
        str,
        typer.Option(
            metavar="|".join(KINDS),
            help="Time series, distribution, dissemination, or peers and their links.",
            autocompletion=complete_kinds,
        ),
    ] = "series"
    peer: Annotated[
        list[str] | None,
        typer.Option(
            help="Plot metrics of this peer; repeatable, one line each.",
            autocompletion=complete_peers,
        ),
    ] = None
    topic: Annotated[
        str | None,
        typer.Option(
            help="Plot metrics of this topic, or colour its part of the overlay.",
            autocompletion=complete_topics,
        ),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time of an overlay (interval or 12.5s); intervals 5,9,… of distributions.",
        ),
    ] = None
    layers: Layers = None
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(LAYOUTS),
            help="Layout of a tree (ring, layers) or of an overlay (force, ring); "
            "default: ring, and force for up to 1,000 peers of an overlay.",
            autocompletion=complete_layouts,
        ),
    ] = None
    hops: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Draw a tree only up to this hop.")
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
    """The pace and the size of a film."""

    fps: Annotated[
        float | None,
        typer.Option(
            metavar="N", min=0.1, max=60, help=f"Frames per second of a film; default: {_FPS:g}."
        ),
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=0.1,
            max=3600,
            help="Length of a film (of each message), with frames at equal times of the run; "
            "default: a frame per interval or hop.",
        ),
    ] = None
    size: Annotated[
        str | None,
        typer.Option(metavar="WxH", help="Pixels of a film; default: 960x800."),
    ] = None

    def check_unused(self) -> None:
        """Check that none is given for a still figure. Raises: UseError."""
        for name in ("fps", "seconds", "size"):
            if getattr(self, name) is not None:
                raise UseError(f"--{name} {ONLY_FILMS}")

    @property
    def frames_per_second(self) -> float:
        """The pace of the film."""
        return self.fps or _FPS

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height, each even, as video codecs want them. Raises: UseError."""
        match = _SIZE.fullmatch(self.size or "960x800")
        if match is None:
            raise UseError(f"--size {self.size}: give width and height, for example 1280x720")
        return int(match[1]) // 2 * 2, int(match[2]) // 2 * 2

    @property
    def frames(self) -> int | None:
        """The number of frames at equal times; null = one per interval or hop."""
        return None if self.seconds is None else math.ceil(self.seconds * self.frames_per_second)


@dataclass(frozen=True)
class PlotOptions(FilmOptions, Drawing):
    """All options of the command."""
