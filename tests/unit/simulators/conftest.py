"""The system that simulators/README.md writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vizpub.simulators.engine.plan import Plan, make_plan


@pytest.fixture(scope="session")
def flood(tmp_path_factory: pytest.TempPathFactory, guide_code: str) -> str:
    """What `vizpub lab simulate` calls it: the file of the guide's code, and its class."""
    path = tmp_path_factory.mktemp("guide") / "flood.py"
    path.write_text(guide_code, "utf-8")
    return f"{path}:Flood"


@pytest.fixture(scope="session")
def flooding(flood: str) -> Callable[..., Plan]:
    """A plan of the guide's system: 40 peers for 12 intervals, if nothing else is said."""

    def plan(seed: int = 1, **chosen: Any) -> Plan:
        return make_plan(flood, {"peers": 40, "intervals": 12, **chosen}, seed)

    return plan
