"""The project as pyproject.toml describes it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def pyproject() -> dict[str, Any]:
    """The content of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


PACKAGES: tuple[str, ...] = tuple(pyproject()["tool"]["hatch"]["build"]["packages"])
"""Names of all packages; the one list that others are compared with."""
