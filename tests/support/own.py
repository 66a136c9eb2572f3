"""The own metrics of docs/metrics.md."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
EXAMPLES = ("degree_assortativity", "mesh_stability", "core_number")


def examples(folder: Path) -> list[str]:
    """Write the page's file into the folder; returns FILE.py:NAME of each."""
    found = re.search(r"<!-- (\w+\.py) -->\n```python\n(.+?)```\n", PAGE.read_text(), re.DOTALL)
    assert found
    file = folder / found[1]
    file.write_text(found[2])
    return [f"{file}:{name}" for name in EXAMPLES]
