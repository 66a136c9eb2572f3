"""The system that simulators/README.md writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulators.plan import Plan, planned

GUIDE = Path(__file__).parents[3] / "simulators" / "README.md"


@pytest.fixture(scope="session")
def flood(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `vizpub simulate` calls it: the file of the guide's code, and its class."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    path = tmp_path_factory.mktemp("guide") / "flood.py"
    path.write_text(code, "utf-8")
    return f"{path}:Flood"


@pytest.fixture(scope="session")
def flooding(flood: str) -> Callable[..., Plan]:
    """A plan of the guide's system: 40 peers for 12 intervals, if nothing else is said."""

    def plan(seed: int = 1, **chosen: Any) -> Plan:
        return planned(flood, {"peers": 40, "intervals": 12, **chosen}, seed)

    return plan
