"""Style, size and colours of figures.

The colours by Okabe and Ito suit colour-blind readers (jfly.uni-koeln.de/color, 2008). A system has
the same colour in all figures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from vizpub.analytics.options import STYLES
from vizpub.model.errors import UnknownName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#7F8C8D"
SYSTEMS = (
    *("poldercast", "scribe", "gossipsub", "hyparview", "gossip", "scribe-chord", "chord"),
    *("broadcast-cyclon", "pastry", "cyclon", "broadcast-or-tree", "plumtree"),
)
"""Systems whose colour is that of their place in the palette."""
_DARK_GROUND, _LIGHT_INK = "#15181D", "#E8E8E8"
_MOST_SHADES = 4
"""Groups of one system that are shades of its colour; more have colours of their own."""
_PALEST, _STEP = 0.55, 0.35

_BASE: dict[Any, Any] = {
    "font.size": 9,
    "lines.linewidth": 1.2,
    "legend.fontsize": "small",
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "vizpub",
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,  # TrueType, which publishers ask for; Type 3 is the default
    "figure.constrained_layout.use": True,
}
_WIDTHS = {"paper": 3.5, "slides": 10.0}
"""Inches of a figure without a size of its own; otherwise `STANDARD_WIDTH`."""
STANDARD_WIDTH = 7.0
_CHANGES: dict[str, dict[Any, Any]] = {
    "paper": {"font.size": 8, "lines.linewidth": 1.0, "axes.linewidth": 0.6},
    "slides": {"font.size": 15, "lines.linewidth": 2.2, "axes.linewidth": 1.2},
    "dark": {
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), _DARK_GROUND),
        **dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"),
            _LIGHT_INK,
        ),
    },
}


@dataclass(frozen=True)
class FigureOptions:
    """Style and size of a figure."""

    style: str | None = None
    """One of STYLES; null = for the screen."""
    width: float | None = None
    """Inches; null = that of the style."""
    height: float | None = None
    """Inches; null = that of the kind of figure, in proportion."""
    title: str | None = None
    """Null = the default title; empty = none."""

    def __post_init__(self) -> None:
        if self.style is not None and self.style not in STYLES:
            raise UnknownName("style of figures", self.style, STYLES)

    @property
    def resolution(self) -> int:
        """Pixels of an inch, in a PNG."""
        return 300 if self.style == "paper" else 150

    @property
    def inches(self) -> float:
        """Width of the figure."""
        return self.width or _WIDTHS.get(self.style or "", STANDARD_WIDTH)

    @property
    def scale(self) -> float:
        """Width relative to the standard one."""
        return self.inches / STANDARD_WIDTH


_DEFAULTS = FigureOptions()
_OPTIONS: ContextVar[FigureOptions] = ContextVar("options of figures", default=_DEFAULTS)


def current_options() -> FigureOptions:
    """The options of the figures that are drawn."""
    return _OPTIONS.get()


@contextmanager
def figure_style(options: FigureOptions | None = None) -> Iterator[None]:
    """Use our style in the block, with these options, or those of the block around it.

    matplotlib's global style is not changed.
    """
    from matplotlib import rc_context

    token = _OPTIONS.set(options or current_options())
    try:
        changes = _CHANGES.get(current_options().style or "", {})
        with rc_context(_BASE | changes | {"savefig.dpi": current_options().resolution}):
            yield
    finally:
        _OPTIONS.reset(token)


def ground() -> str:
    """The colour behind a figure."""
    return _DARK_GROUND if current_options().style == "dark" else "white"


def ink(colour: str = "#000000") -> str:
    """A dark colour of text or lines, or its light counterpart on a dark ground."""
    return _LIGHT_INK if current_options().style == "dark" else colour


def palette() -> tuple[str, ...]:
    """The palette of the style: its last colour is that of text."""
    return (*PALETTE[:-1], ink(PALETTE[-1]))


def colours() -> Iterator[str]:
    """The palette, repeated without end."""
    return cycle(palette())


def shades_of(count: int) -> list[Any]:
    """`count` colours: the palette, or steps of a scale if there are more."""
    if count <= len(PALETTE):
        return list(palette()[:count])
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0.1, 0.95, count)))


def system_of(group: str) -> str:
    """The system of a group's name: 'Scribe' of 'Scribe, churn', 'scribe' of 'scribe seed=1'."""
    return re.split(r",| \S+=", group, maxsplit=1)[0]


def colours_of(
    groups: Sequence[str], systems: Sequence[str] = (), of: Sequence[str] = ()
) -> dict[str, str]:
    """A colour for each group: that of its system, paler for each further group of the system.

    `of` has the systems of the groups (default: as their names say), and `systems` those of all
    figures that belong together, so that each has its colour in all of them.
    """
    of = of or [system_of(group) for group in groups]
    names = [name.lower() for name in dict.fromkeys((*systems, *of))]
    fixed = {name: palette()[SYSTEMS.index(name) % len(PALETTE)] for name in names
             if name in SYSTEMS}  # fmt: skip
    free = cycle([colour for colour in palette() if colour not in fixed.values()] or palette())
    base = {name: fixed.get(name) or next(free) for name in names}
    sizes, placed = Counter(of), Counter[str]()
    chosen: dict[str, str] = {}
    others = colours()
    for group, system in zip(groups, of, strict=True):
        if sizes[system] > _MOST_SHADES:
            chosen[group] = next(others)
        else:
            step = min(_STEP, _PALEST / max(sizes[system] - 1, 1))
            chosen[group] = _blend(base[system.lower()], step * placed[system])
        placed[system] += 1
    return chosen


def _blend(colour: str, share: float) -> str:
    """The colour mixed with a share of the ground's."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = (
        (1 - share) * part + share * behind
        for part, behind in zip(to_rgb(colour), to_rgb(ground()), strict=True)
    )
    return str(to_hex((red, green, blue))).upper()


def relabel(figure: Figure, xlabel: str | None, ylabel: str | None, legend: str | None) -> None:
    """Replace the labels of the axes below and beside the panels, and place or hide legends.

    `legend` is a place inside a panel ('upper left', 'best'), 'outside' (below the panels), or
    'none'; null leaves them where they are.
    """
    from vizpub.analytics.figures.labels import escape

    panels = [panel for panel in figure.axes if panel.axison]
    for panel in panels:
        if xlabel is not None and panel.get_xlabel():
            panel.set_xlabel(escape(xlabel))
        if ylabel is not None and panel.get_ylabel():
            panel.set_ylabel(escape(ylabel))
    if legend is not None:
        _place_legends(figure, legend)


def _place_legends(figure: Figure, place: Any) -> None:
    for panel in figure.axes:
        if (drawn := panel.get_legend()) is None:
            continue
        handles: list[Any] = drawn.legend_handles
        texts = [text.get_text() for text in drawn.get_texts()]
        drawn.remove()
        if place == "outside":
            figure.legend(handles, texts, loc="outside lower center", ncols=2)
        elif place != "none":
            panel.legend(handles, texts, loc=place)
    if place == "none":
        for drawn in list(figure.legends):
            drawn.remove()
