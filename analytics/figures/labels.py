"""Texts of figures: the words and units of metrics, and names that fit."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from vizpub.model import wording
from vizpub.model.columns import Column
from vizpub.model.metrics import METRICS
from vizpub.model.tables import RECEPTIONS

_DRAWN = {ord("$"): r"\$", 0xFEFF: None}
"""Escapes: matplotlib reads $ as mathematics, and cannot write U+FEFF to a PDF."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no SVG can have, where text is text."""
_IN_US = re.compile("_us(_|$)")
NAME_WIDTH = 48
"""Characters of a name in a legend."""
_STATISTICS = {
    "p50": "median",
    "p90": "90th percentile of",
    "p95": "95th percentile of",
    "p99": "99th percentile of",
    "mean": "mean",
    "min": "minimum",
    "max": "maximum",
}


def shorten(name: str, width: int = NAME_WIDTH) -> str:
    """A name cut in its middle to at most `width` characters, escaped for matplotlib."""
    return escape(wording.shorten(name, width))


def escape(text: str) -> str:
    """The text, escaped so that matplotlib draws it unchanged."""
    hidden = " " if text.startswith("_") else ""  # legends skip names that begin with _
    return hidden + _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text.translate(_DRAWN))


def values_and_label(table: pa.Table, name: str) -> tuple[np.ndarray, str]:
    """The values of a column as doubles (null = NaN), and its name in words with the unit."""
    values: np.ndarray = table[name].cast(pa.float64()).fill_null(math.nan).to_numpy()
    label, factor = label_of(name, _unit(table, name))
    return values * factor, label


def label_of(name: str, unit: str) -> tuple[str, float]:
    """The words for a metric with its unit, and the factor of its values (µs are drawn as ms).

    'delay_us_p95' in µs is '95th percentile of delay (ms)', a share and what the words name
    already have no unit.
    """
    factor = 1.0
    if unit == "µs":
        unit, factor = "ms", 1e-3
    words = metric_words(name)
    is_said = unit in ("", "share", *words.split())
    return words if is_said else f"{words} ({unit})", factor


def metric_words(name: str) -> str:
    """The words for a metric: 'hit_ratio' is 'hit ratio', 'gauges/hops/per/lookups' 'hops per
    lookups'.
    """
    table, _, rest = name.partition("/")
    name = rest if table in ("gauges", "messages", "peers", "topics", "overlay") and rest else name
    for ends in ("in", "out"):
        name = name.replace(f"{ends}_degree", f"{ends}-degree")
    words = name.replace("/per/", " per ").replace("/", " ").replace("_us_", "_").split("_")
    words = words[:-1] if words[-1] == "us" and len(words) > 1 else words
    if words[-1] in _STATISTICS and len(words) > 1:
        return f"{_STATISTICS[words[-1]]} {' '.join(words[:-1])}"
    return " ".join(words)


def _unit(table: pa.Table, name: str) -> str:
    metadata = table.schema.field(name).metadata or {}  # of own metrics
    if b"unit" in metadata:
        return str(metadata[b"unit"].decode())
    columns: Iterable[Column] = (c for t in (*METRICS, RECEPTIONS) for c in t if c.name == name)
    return next((column.unit for column in columns), "µs" if _IN_US.search(name) else "")


def wrap(label: str, inches: float) -> str:
    """The label in lines that fit beside a panel of this height, or above one of this width."""
    from matplotlib import rcParams

    lines = textwrap.wrap(label, max(int(72 * inches / (0.55 * rcParams["font.size"])), 12))
    return "\n".join(lines)


def is_whole(table: pa.Table, name: str) -> bool:
    """Return True if the values are drawn as whole numbers (µs are drawn as ms)."""
    return pa.types.is_integer(table.schema.field(name).type) and _unit(table, name) != "µs"
