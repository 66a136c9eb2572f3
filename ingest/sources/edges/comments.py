"""Comments of an edge list that describe its columns, as SNAP and KONECT write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

WEIGHT = "weight"
"""A column that is no time; its values do not count."""
UNFIT = {
    "matrix": "is a matrix (MatrixMarket): write its entries as lines of two peers, `src dst`",
    "two kinds": "has rows that link nodes of two kinds, each numbered from 1 (% bip)",
}
"""Reasons why files of these kinds are refused."""
_KONECT = re.compile(r"%\s*(sym|asym|bip)\s+[a-z]+\s*", re.ASCII)
_SNAP = re.compile(r"#\s*From\S*\s+To\S*((?:\s+\S+)*)\s*", re.IGNORECASE)
_TIME = re.compile(r"time|date|interval|epoch", re.IGNORECASE)
_UNDIRECTED = re.compile(r"[#%]\s*undirected\b", re.IGNORECASE)


class EdgeColumns(NamedTuple):
    """Columns of an edge list beyond both ends, and whether a row is a link either way."""

    more: Sequence[str] | None = None
    """Null = nothing is said; a file may have fewer."""
    is_undirected: bool = False
    unfit: str | None = None
    """The kind of the file, one of UNFIT, where its rows are no links between peers."""


def read_comments(comments: Sequence[bytes]) -> EdgeColumns:
    """Read the comments at the beginning of a file."""
    texts = [line.decode("utf-8", "replace").strip() for line in comments]
    more: Sequence[str] | None = None
    undirected = False
    for text in texts:
        if text.startswith("%%MatrixMarket"):
            return EdgeColumns(unfit="matrix")
        if match := _KONECT.fullmatch(text):
            if match[1] == "bip":
                return EdgeColumns(unfit="two kinds")
            more, undirected = (WEIGHT, "interval"), match[1] == "sym"
        elif match := _SNAP.fullmatch(text):
            more = ["interval" if _TIME.search(name) else WEIGHT for name in match[1].split()]
        undirected |= bool(_UNDIRECTED.match(text))
    return EdgeColumns(more, undirected)
