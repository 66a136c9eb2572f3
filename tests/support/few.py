"""Of the cases of a test, few are in the quick ring: those that differ in kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], quick: Iterable[Any]) -> list[Any]:
    """All cases, for `parametrize`; long are those that are not among `quick`."""
    kept = list(quick)
    return [case if case in kept else _long(case) for case in cases]


def _long(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
