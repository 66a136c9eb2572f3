"""A broker of Kafka for the tests of this folder."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.broker import Broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Each test has topics of its own in it."""
    from tests.support.broker import broker_in

    made = broker_in(tmp_path_factory.mktemp("broker"))
    yield made
    made.end(signal.SIGKILL)
