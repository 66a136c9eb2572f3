"""Which slow imports commands make, found by one process that runs them one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
_EACH = """
import json, sys
from typer.testing import CliRunner
from vizpub.cli.main import app

HEAVY = {"pyspark", "pandas", "numba", "matplotlib", "jgo"}
told, before = [], set()
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, words, prog_name="vizpub")
    now = HEAVY & set(sys.modules)
    told.append((done.exit_code, sorted(now - before)))
    before = now
print(json.dumps(told))
"""


def codes_and_imports(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str]
) -> list[tuple[int, list[str]]]:
    """The exit code of each command, and the heavy packages that it imported first."""
    done = subprocess.run(
        [sys.executable, "-c", _EACH, json.dumps(commands)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [(code, names) for code, names in json.loads(done.stdout)]
