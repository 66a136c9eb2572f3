"""Files of the VizPub tool of 2014: recognising them, and splitting them into nodes.

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

from vizpub.ingest.inputs.files import locate
from vizpub.ingest.inputs.reader import CUT_OFF, INVALID_UTF8
from vizpub.reports.compressed import Content, plain_path
from vizpub.reports.fields import LAST_INTERVAL, Free, Key, Object, Whole
from vizpub.reports.files import RepeatedKey, strict_json

HOST, MERGED = "json", "merged json"
"""Kinds of files: written by a host, or merged from those of several hosts."""

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


def recognise(path: str, head: bytes) -> str | None:
    """Return HOST or MERGED if the content begins like that of VizPub, or the path is one of its
    own:
    <protocol>/[<checkpoint>/]<checkpoint>_<host>_<protocol>.json, where merged files name no host.
    Return null for other files.
    """
    path = plain_path(path)
    content, layout = _CONTENT.match(head.removeprefix(BOM_UTF8)), _LAYOUT.search(path)
    if content:
        protocol = content[1].decode("utf-8", "replace")
    elif layout:
        protocol = layout[1]
    else:
        return None
    merged = rf"\d{{8}}{re.escape(protocol)}\.json(?:\.gz|\.zst)?"
    return MERGED if re.fullmatch(merged, PurePosixPath(path).name) else HOST


def read_content(path: str) -> tuple[bytes, str | None]:
    """Return the content of a file, and its damage if it is incomplete."""
    filesystem, inside = locate(path)
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


def split_nodes(content: bytes, damage: str | None = None) -> _Checkpoint:
    """Split a file into its nodes. `damage` is the reason why it is incomplete; null if it is
    not.
    """
    text = content.removeprefix(BOM_UTF8)
    try:
        fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        with suppress(RecursionError):  # where a node is nested too deep, it alone is refused
            strict_json(text)
        values = {name: _decode_shallow(value) for name, value in fields.items()}
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        # Halves of surrogate pairs, which msgspec takes nowhere, are of one node alone.
        try:
            values = _parse_with_halves(text)
        except (ValueError, RecursionError):
            return _Checkpoint(_why_unreadable(content, damage, error), content[:_KEPT])
    if wrong := "; ".join(_FILE.problems(values, "")):
        return _Checkpoint(wrong, content[:_KEPT])
    return _Checkpoint(
        None,
        None,
        values["protocolName"],
        values["intervalCount"],
        tuple(_FILE.unknown_paths(values, "")),
        values["nodes"],
    )


def _parse_with_halves(text: bytes) -> dict[str, Any]:
    """Decode a file's fields by a slower decoder that accepts halves of surrogate pairs.

    Raises: ValueError, RecursionError.
    """
    values = strict_json(text)
    if not isinstance(values, dict):
        raise ValueError("no object")
    values = {_name_text(name): value for name, value in values.items()}
    if isinstance(nodes := values.get("nodes"), dict):
        values["nodes"] = {
            _name_text(key): json.dumps(node).encode() for key, node in nodes.items()
        }
    return values


def _name_text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _decode_shallow(value: msgspec.Raw) -> Any:
    """Decode a JSON value; the members of an object stay JSON."""
    try:
        return msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return json.loads(bytes(value))


def _why_unreadable(content: bytes, damage: str | None, error: Exception) -> str:
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
