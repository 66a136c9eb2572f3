"""Wheels of this project, installed into a folder as into site-packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def install_into(folder: Path, *projects: Path) -> None:
    """Build the wheel of each project and install it there, without its dependencies."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([*pip, *options, *map(str, projects)], check=True)
