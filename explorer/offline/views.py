"""Saved views of a run, which an exported file brings along (explorer/page/savedviews.js)."""

from __future__ import annotations

import json
from pathlib import Path

from vizpub.model.errors import UseError

_MOST_BYTES = 1_000_000
_LENGTHS = {"name": 200, "note": 2000, "address": 4000}
"""The texts of a view, and their letters at most."""


def read_views(file: Path, run: str) -> bytes:
    """The content of a file of views that the page exported, checked.

    Raises: UseError for a file that cannot be read, other content, or views of another run.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UseError(f"cannot read {file}: {error.strerror}") from error
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        fields = None
    views = fields.get("views") if isinstance(fields, dict) else None
    is_whole = len(content) <= _MOST_BYTES
    if not is_whole or not isinstance(views, list) or not all(map(_is_view, views)):
        raise UseError(f"{file} is no file of views: export it from 'Views' in vizpub explore")
    if fields.get("run") != run:
        raise UseError(f"{file} has views of the run '{fields.get('run')}', not of '{run}'")
    return content


def _is_view(view: object) -> bool:
    return isinstance(view, dict) and all(
        isinstance(view.get(name), str) and len(view[name]) <= most
        for name, most in _LENGTHS.items()
    )
