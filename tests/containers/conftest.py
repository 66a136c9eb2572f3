"""Containers that are there, or the reason why not, and a Neo4j on a network of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.containers.engine import (
    SECRET,
    NoContainers,
    answering,
    neo4j,
    network,
    pytest_runtest_makereport,
    started,
)

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.network import Network

__all__ = ["pytest_runtest_makereport"]


@contextmanager
def _skipping() -> Iterator[None]:
    """Without containers a test is skipped, or fails with REQUIRE_CONTAINERS=1."""
    try:
        yield
    except NoContainers as reason:
        if os.environ.get("REQUIRE_CONTAINERS") == "1":
            pytest.fail(f"REQUIRE_CONTAINERS is set and none can be had: {reason}", pytrace=False)
        pytest.skip(f"no containers: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    with _skipping():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    with _skipping():
        yield


@pytest.fixture(scope="session")
def auth_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What containers mount as a secret."""
    path = tmp_path_factory.mktemp("secret") / "auth"
    path.write_text(f"neo4j/{SECRET}\n")
    return path


@pytest.fixture(scope="session")
def net() -> Iterator[Network]:
    with network() as created:
        yield created


@pytest.fixture(scope="session")
def server(auth_file: Path, net: Network) -> Iterator[DockerContainer]:
    """It has its password from a file, a setting from the environment, and the name neo4j.

    A test may stop it, and starts it again.
    """
    container = neo4j(
        NEO4J_AUTH_FILE="/run/secrets/neo4j_auth", NEO4J_db_lock_acquisition_timeout="7s"
    )
    container.with_volume_mapping(auth_file, "/run/secrets/neo4j_auth")
    container.with_network(net).with_network_aliases("neo4j")
    with started(container):
        answering(container, SECRET)
        yield container
