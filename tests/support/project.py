"""The project as pyproject.toml describes it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def pyproject() -> dict[str, Any]:
    """The content of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


PARTS = tuple(sorted(path.name for path in (ROOT / "vizpub").iterdir() if path.is_symlink()))
"""Names of the packages in vizpub, which are links to folders of these names beside it."""
PACKAGES = (*PARTS, "vizpub")
"""The folders with the code of the product; the one list that others are compared with."""


def in_namespace(path: Path) -> str:
    """Where Python finds a file of the checkout: vizpub/model/clock.py for model/clock.py."""
    name = path.relative_to(ROOT).as_posix()
    return f"vizpub/{name}" if name.partition("/")[0] in PARTS else name


def real(path: str) -> str:
    """A path from the root without the link in it: model/clock.py for vizpub/model/clock.py."""
    top, _, rest = path.partition("/")
    return rest if top == "vizpub" and rest.partition("/")[0] in PARTS else path
