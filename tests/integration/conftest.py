"""A real Neo4j for the tests: the one of NEO4J_URI, a container, or a local server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tests.containers.engine import (
    NoContainers,
    answering,
    neo4j,
    pytest_runtest_makereport,
    started,
)
from tests.support.hdfs import one_cluster
from tests.support.ingested import Store
from tests.support.object_store import machine, one_server, server, url
from vizpub.graphstore.server.address import Connection, from_environment
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.model.errors import ServiceError
from vizpub.runstore.store import StoredRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["machine", "one_cluster", "one_server", "pytest_runtest_makereport", "server", "url"]

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def stored(request: pytest.FixtureRequest) -> Store:
    """Runs that several tests read; Spark starts when one does not exist yet."""
    assert request.config.cache is not None
    return Store(request.config.cache.mkdir("runs"), lambda: request.getfixturevalue("spark"))


@pytest.fixture(scope="session")
def gossipsub(stored: Store) -> StoredRun:
    """30 files of a real gossipsub network."""
    return stored("gossipsub")


@pytest.fixture(scope="session")
def vizpub_process() -> Callable[..., Done]:
    """Call `vizpub` in a process of its own, with a Spark of its own."""

    def call(*words: str, cwd: Path | None = None) -> Done:
        return subprocess.run(
            [sys.executable, "-c", "from vizpub.cli.main import app; app()", *words],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )

    return call


@pytest.fixture(scope="module")
def vizpub_here(spark: SparkSession) -> Iterator[Callable[..., Done]]:
    """Call `vizpub` in this process, which lends it the session of the tests.

    A command that starts a session would take this one for its own, and stop it. The session's
    tasks run where it was started, and find no code of the user's.
    """
    from vizpub.cli.main import app

    def call(*words: str) -> Done:
        result = CliRunner().invoke(app, words)
        return Done(words, result.exit_code, result.stdout, result.stderr)

    with pytest.MonkeyPatch.context() as patch:
        for start in (
            "vizpub.ingest.pipeline.warm_session",
            "vizpub.ingest.spark.tasks.spark_session",
        ):
            patch.setattr(start, lambda *_, **__: nullcontext(spark))
        yield call


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A running Neo4j; a test removes what it adds.

    NEO4J_URI names one; VIZPUB_TEST_NEO4J=container runs one in Docker; otherwise a local server is
    started for the session. Without any, the test is skipped, or fails with REQUIRE_NEO4J=1.
    """
    try:
        if given := from_environment():
            connect(given).close()
            yield given
        elif os.environ.get("VIZPUB_TEST_NEO4J") == "container":
            yield from _container()
        else:
            yield from _local(tmp_path_factory)
    except (ServiceError, NoContainers) as error:
        if os.environ.get("REQUIRE_NEO4J") == "1":
            pytest.fail(f"REQUIRE_NEO4J is set and no Neo4j can be had: {error}", pytrace=False)
        pytest.skip(f"no Neo4j: {error}")


def _local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    server = LocalServer(tmp_path_factory.mktemp("neo4j") / "home", "test")
    try:
        yield server.start()
    finally:
        server.remove()


def _container() -> Iterator[Connection]:
    with started(neo4j()) as container:
        yield answering(container)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a server that tests stop and kill, at an awkward path.

    Tests that use it start it (quick if it runs already) and empty it.
    """
    home = tmp_path_factory.mktemp("server") / "höme of Neo4j"
    try:
        LocalServer(home, "test").start()
    except ServiceError as error:
        if os.environ.get("REQUIRE_NEO4J") == "1":
            raise
        pytest.skip(f"no local server: {error}")
    yield home
    LocalServer(home).remove()
