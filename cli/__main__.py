"""`python -m cli`, and the program that `spark-submit` is given."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # Run as a file: Python would look first in its folder, where `ingest` and `neo4j` are commands.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from cli.main import app

if __name__ == "__main__":
    app(prog_name="vizpub")
