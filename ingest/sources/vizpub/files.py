"""Files of the VizPub tool: recognising them, and splitting them into nodes.

A file is one JSON object for one checkpoint of one host. Its nodes are not decoded here.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import msgspec
from pyarrow import fs

from vizpub.ingest.inputs.reader import CUT_OFF, INVALID_UTF8
from vizpub.reports.compressed import Content, without_query
from vizpub.reports.fields import LAST_INTERVAL, Free, Key, Object, Whole
from vizpub.reports.files import RepeatedKey, strict_json

HOST, MERGED = "json", "merged json"
"""What a file may be recognised as: written by a host, or merged from what hosts wrote."""

_FILE = Object(
    {
        "protocolId": Whole(),
        "protocolName": Key(),
        "intervalCount": Whole(LAST_INTERVAL),
        "nodes": Free(),
        "edges": Free(),
        "publications": Free(),
    },
    required=("protocolName", "intervalCount", "nodes"),
)
_CONTENT = re.compile(
    rb'\s*\{(?=.*?"intervalCount"\s*:)(?=.*?"nodes"\s*:).*?"protocolName"\s*:\s*"([^"]*)"',
    re.DOTALL,
)
_LAYOUT = re.compile(r"([^/]+)/(?:\d{8}/)?\d{8}(?:_[^/]+_)?\1\.json(?:\.gz|\.zst)?\Z")
_KEPT = 4096
"""Bytes of a refused file that are kept."""


def recognised(path: str, head: bytes) -> str | None:
    """HOST or MERGED, if the content begins as VizPub's, or the file lies where VizPub puts its
    own: <protocol>/[<checkpoint>/]<checkpoint>_<host>_<protocol>.json; merged ones name no host.
    """
    path = without_query(path)
    content, layout = _CONTENT.match(head.removeprefix(BOM_UTF8)), _LAYOUT.search(path)
    if content:
        protocol = content[1].decode("utf-8", "replace")
    elif layout:
        protocol = layout[1]
    else:
        return None
    merged = rf"\d{{8}}{re.escape(protocol)}\.json(?:\.gz|\.zst)?"
    return MERGED if re.fullmatch(merged, PurePosixPath(path).name) else HOST


def content_of(path: str) -> tuple[bytes, str | None]:
    """The content of a file, and the damage where it is incomplete."""
    filesystem, inside = fs.FileSystem.from_uri(path)
    with filesystem.open_input_stream(inside, compression=None) as stream:
        content = Content(stream)
        return b"".join(content), content.damage


@dataclass(frozen=True)
class _Checkpoint:
    """A file's own fields, and its nodes as JSON by their keys."""

    fault: str | None
    text: bytes | None = None
    """The beginning of the content, where it is refused."""
    run: str | None = None
    interval: int | None = None
    unknown: tuple[str, ...] = ()
    nodes: Mapping[str, bytes | memoryview] = field(default_factory=dict)


def split(content: bytes, damage: str | None = None) -> _Checkpoint:
    """Split a file into its nodes. `damage` is why it is incomplete; null if it is not."""
    text = content.removeprefix(BOM_UTF8)
    try:
        values = _fields(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        # Halves of surrogate pairs, which msgspec takes nowhere, are of one node alone.
        try:
            values = _fields_with_halves(text)
        except (ValueError, RecursionError):
            return _Checkpoint(_why(content, damage, error), content[:_KEPT])
    if wrong := "; ".join(_FILE.problems(values, "")):
        return _Checkpoint(wrong, content[:_KEPT])
    return _Checkpoint(
        None,
        None,
        values["protocolName"],
        values["intervalCount"],
        tuple(_FILE.unknown(values, "")),
        values["nodes"],
    )


def _fields(text: bytes) -> dict[str, Any]:
    """A file's fields; its nodes stay JSON. Raises: DecodeError, ValueError, RecursionError."""
    fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    with suppress(RecursionError):  # where a node is nested too deep, it alone is refused
        strict_json(text)
    return {name: _shallow(value) for name, value in fields.items()}


def _fields_with_halves(text: bytes) -> dict[str, Any]:
    """As `_fields`, by a decoder that takes halves of surrogate pairs, and more slowly."""
    values = strict_json(text)
    if not isinstance(values, dict):
        raise ValueError("no object")
    values = {_shown(name): value for name, value in values.items()}
    if isinstance(nodes := values.get("nodes"), dict):
        values["nodes"] = {_shown(key): json.dumps(node).encode() for key, node in nodes.items()}
    return values


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _shallow(value: msgspec.Raw) -> Any:
    """A JSON value; what is in an object stays JSON."""
    try:
        return msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return json.loads(bytes(value))


def _why(content: bytes, damage: str | None, error: Exception) -> str:
    if damage:
        return CUT_OFF
    try:
        content.decode()
    except UnicodeDecodeError:
        return INVALID_UTF8
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, RepeatedKey):
        return str(error)
    return "not an object" if isinstance(error, msgspec.ValidationError) else "not JSON"
