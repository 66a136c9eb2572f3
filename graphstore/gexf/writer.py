"""A streaming writer of GEXF 1.3, the file format of Gephi.

What it writes is what Gephi's importer takes without a single complaint: one dynamic
graph whose time is a whole number (an interval, a hop), periods as closed and disjoint
spells `[first, last + 0.999]`, the block of dynamic attributes before the static one, and
nodes before edges. It knows nothing of overlays and holds one element at a time, so that
a graph may be larger than memory.

Format: https://gexf.net, specification 1.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TextIO
from xml.sax.saxutils import escape

AttributeType = Literal["integer", "long", "double", "boolean", "string"]
Value = bool | int | float | str
Spell = tuple[int, int]
"""First and last step of a period, both inclusive."""
Run = tuple[str, int, int, Value]
"""A dynamic attribute, the first and last step of a value, and the value."""

NODE_SIZE = 8.0
_SPELL_END = ".999"
"""Added to the last step: Gephi's bounds are inclusive, so a spell must end before the next."""

_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">
"""
_GRAPH = (
    '<graph mode="dynamic" timeformat="double" timerepresentation="interval" '
    'defaultedgetype="directed" idtype="string">\n'
)

# XML 1.0 has no way to write these: control characters are shown by their pictures
# (␀, ␁, …), lone surrogates and noncharacters by the replacement character.
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in (9, 10, 13)}
_FORBIDDEN = dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "\N{REPLACEMENT CHARACTER}")
_TEXT = str.maketrans({**_PICTURES, **_FORBIDDEN})
# Written as they are, a reader would turn them into blanks.
_QUOTED = {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


@dataclass(frozen=True)
class Attribute:
    """A column of nodes or edges; its id is its title, as the plainer readers want it."""

    title: str
    type: AttributeType
    dynamic: bool = False


@dataclass(frozen=True)
class Head:
    """The head of a file: a description for people, and the columns."""

    description: str
    node_attributes: Sequence[Attribute] = ()
    edge_attributes: Sequence[Attribute] = ()


class Node(NamedTuple):
    """A node; its spells are disjoint and in order, its attributes declared in the head."""

    id: int
    label: str
    spells: Sequence[Spell]
    position: tuple[float, float]
    colour: str
    size: float = NODE_SIZE
    runs: Sequence[Run] = ()
    values: Sequence[tuple[str, Value]] = ()


class Edge(NamedTuple):
    """An edge. (source, target, kind) is unique, and either every edge has a kind or none."""

    source: int
    target: int
    spells: Sequence[Spell]
    runs: Sequence[Run] = ()
    values: Sequence[tuple[str, Value]] = ()
    kind: str | None = None
    label: str | None = None
    colour: str | None = None


@dataclass(frozen=True)
class GexfCounts:
    """The numbers of nodes and edges in a file."""

    nodes: int
    edges: int


def _xml_quoted(text: str) -> str:
    """Text as the value of an attribute, between double quotes."""
    return escape(text.translate(_TEXT), _QUOTED)


def write_gexf(out: TextIO, head: Head, nodes: Iterable[Node], edges: Iterable[Edge]) -> GexfCounts:
    """Write one graph as a stream; `edges` is not read before `nodes` has ended."""
    out.write(_HEADER)
    description = escape(head.description.translate(_TEXT), {"\r": "&#13;"})
    meta = f"<creator>vizpub</creator><description>{description}</description>"
    out.write(f"<meta>{meta}</meta>\n{_GRAPH}")
    out.write(_declarations("node", head.node_attributes))
    out.write(_declarations("edge", head.edge_attributes))
    out.write("<nodes>\n")
    node_count = _write_all(out, map(_node_writer(head.node_attributes), nodes))
    out.write("</nodes>\n<edges>\n")
    edge_count = _write_all(out, map(_edge_writer(head.edge_attributes), edges))
    out.write("</edges>\n</graph>\n</gexf>\n")
    return GexfCounts(node_count, edge_count)


def _declarations(of: str, attributes: Sequence[Attribute]) -> str:
    """The blocks of one class. Some readers keep the types of the last block only: static last."""
    dynamic = [a for a in attributes if a.dynamic]
    static = [a for a in attributes if not a.dynamic]
    return _block(of, "dynamic", dynamic) + _block(of, "static", static)


def _block(of: str, mode: str, attributes: Sequence[Attribute]) -> str:
    if not attributes:
        return ""
    rows = "".join(
        f'<attribute id="{_xml_quoted(a.title)}" title="{_xml_quoted(a.title)}" type="{a.type}"/>\n'
        for a in attributes
    )
    return f'<attributes class="{of}" mode="{mode}">\n{rows}</attributes>\n'


def _write_all(out: TextIO, texts: Iterable[str]) -> int:
    """Write texts; return their number. The file buffers small writes."""
    count = 0
    for text in texts:
        out.write(text)
        count += 1
    return count


def _double(value: Value) -> str:
    """Format a double as XML Schema does."""
    number = float(value)
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else ("INF" if number > 0 else "-INF")


_FORMATS: dict[str, Callable[[Value], str]] = {
    "integer": str,
    "long": str,
    "double": _double,
    "boolean": lambda value: "true" if value else "false",
    "string": lambda value: _xml_quoted(str(value)),
}

_Formats = dict[str, tuple[str, Callable[[Value], str]]]


def _formats(attributes: Sequence[Attribute]) -> _Formats:
    """Return the escaped name and the formatter of each attribute."""
    return {a.title: (_xml_quoted(a.title), _FORMATS[a.type]) for a in attributes}


def _spells(spells: Sequence[Spell]) -> str:
    text = "".join([f'<spell start="{first}" end="{last}{_SPELL_END}"/>' for first, last in spells])
    return f"<spells>{text}</spells>"


def _attvalues(formats: _Formats, runs: Sequence[Run], values: Sequence[tuple[str, Value]]) -> str:
    if not runs and not values:
        return ""
    texts = []
    for title, first, last, value in runs:
        name, form = formats[title]
        span = f'start="{first}" end="{last}{_SPELL_END}"'
        texts.append(f'<attvalue for="{name}" value="{form(value)}" {span}/>')
    for title, value in values:
        name, form = formats[title]
        texts.append(f'<attvalue for="{name}" value="{form(value)}"/>')
    return f"<attvalues>{''.join(texts)}</attvalues>"


def _rgb(colour: str) -> str:
    """`#D55E00` as red, green and blue: `hex=` is in the format too, but fewer can read it."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return f'r="{red}" g="{green}" b="{blue}"'


def _node_writer(attributes: Sequence[Attribute]) -> Callable[[Node], str]:
    formats = _formats(attributes)

    def node_text(node: Node) -> str:
        x, y = node.position
        return (
            f'<node id="{node.id}" label="{_xml_quoted(node.label)}">'
            f"{_attvalues(formats, node.runs, node.values)}{_spells(node.spells)}"
            # Gephi reads the size only from the first attribute of its element.
            f'<viz:size value="{node.size}"/><viz:position x="{x:.3f}" y="{y:.3f}" z="0.0"/>'
            f"<viz:color {_rgb(node.colour)}/></node>\n"
        )

    return node_text


def _edge_writer(attributes: Sequence[Attribute]) -> Callable[[Edge], str]:
    formats = _formats(attributes)

    def edge_text(edge: Edge) -> str:
        source, target, spells, runs, values, kind, label, colour = edge
        attributes_text = "" if kind is None else f' kind="{_xml_quoted(kind)}"'
        if label is not None:
            attributes_text += f' label="{_xml_quoted(label)}"'
        shown = "" if colour is None else f"<viz:color {_rgb(colour)}/>"
        return (
            f'<edge source="{source}" target="{target}"{attributes_text}>'
            f"{_attvalues(formats, runs, values)}{_spells(spells)}{shown}</edge>\n"
        )

    return edge_text
