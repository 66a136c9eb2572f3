"""Containers that are there, or the reason why not."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.containers.engine import NoContainers, pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Iterator[None]:
    try:
        yield
    except NoContainers as reason:
        if os.environ.get("REQUIRE_CONTAINERS") == "1":
            pytest.fail(f"REQUIRE_CONTAINERS is set and none can be had: {reason}", pytrace=False)
        pytest.skip(f"no containers: {reason}")
