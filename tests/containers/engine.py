"""Containers for tests: started through testcontainers, and their logs shown with failed tests."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.settings import PROFILES
from vizpub.model.errors import Neo4jUnavailable

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.network import Network

NEO4J = "vizpub/neo4j:5.26"
VIZPUB = "vizpub/vizpub"
PASSWORD = "vizpub-tests"
WORD = "Xq7mTZ"
"""Appears in no other text than the secret."""
SECRET = f"""@ '{WORD}' of "a" \\file #1"""
_READY_S = 300
_RUNNING: list[DockerContainer] = []


class NoContainers(Exception):
    """Why tests can have no containers here."""


def container(image: str, **environment: str) -> DockerContainer:
    """A container to be started. Raises: NoContainers without an engine or the image."""
    look_for(image)
    _use_this_machine_only()
    from testcontainers.core.container import DockerContainer

    return DockerContainer(image).with_envs(**environment)


def network() -> Network:
    """A network of its own, to be created. Raises: NoContainers without an engine."""
    look_for(NEO4J)
    _use_this_machine_only()
    from testcontainers.core.network import Network

    return Network()


def _use_this_machine_only() -> None:
    """Set testcontainers up, before it is imported."""
    # The container that would clean up after a killed session comes from a registry.
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    # Ports are mapped to this machine; the bridge's addresses need not be reachable.
    os.environ["TESTCONTAINERS_HOST_OVERRIDE"] = "127.0.0.1"
    os.environ["TESTCONTAINERS_CONNECTION_MODE"] = "docker_host"


def neo4j(**environment: str) -> DockerContainer:
    """Neo4j's image, for a quick start; with the tests' password unless another is given."""
    profile = PROFILES["test"]
    if "NEO4J_AUTH_FILE" not in environment:
        environment = {"NEO4J_AUTH": f"neo4j/{PASSWORD}"} | environment
    told = {
        "server.jvm.additional": " ".join(profile.jvm),
        "server.memory.pagecache.size": profile.page_cache,
        **profile.settings,
    }
    named = {f"NEO4J_{n.replace('_', '__').replace('.', '_')}": v for n, v in told.items()}
    made = container(NEO4J, **named, **environment)
    # Any port, of this machine only, whose password everybody knows.
    made.ports["7687/tcp"] = ("127.0.0.1", None)  # type: ignore[assignment]
    return made


@contextmanager
def started(container: DockerContainer) -> Iterator[DockerContainer]:
    """Run the container for the length of the block; then remove it with its volumes.

    An error in the block shows the container's log.
    """
    _RUNNING.append(container)
    try:
        yield container.start()
    except Exception as error:
        error.add_note(f"log of {container.image}:\n{logs(container)}")
        raise
    finally:
        _RUNNING.remove(container)
        container.stop()


def answering(container: DockerContainer, password: str = PASSWORD) -> Connection:
    """The address of a running Neo4j, once it answers."""
    deadline = time.monotonic() + _READY_S
    while True:
        found = Connection(
            f"bolt://127.0.0.1:{container.get_exposed_port(7687)}", "neo4j", password
        )
        try:
            connect(found).close()
        except Neo4jUnavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return found


def logs(container: DockerContainer) -> str:
    """The container's output so far."""
    return "".join(text.decode() for text in container.get_logs())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A conftest that imports this shows the containers' logs with a failed test."""
    report = yield
    if report.failed:
        for running in _RUNNING:
            report.sections.append((f"log of {running.image}", logs(running)))
    return report


def compose_command() -> tuple[str, ...]:
    """How Docker Compose is called here. Raises: NoContainers where it is missing."""
    for words in (("docker", "compose"), ("docker-compose",)):
        with suppress(OSError):
            if not subprocess.run([*words, "version"], capture_output=True, check=False).returncode:
                return words
    raise NoContainers("there is no Docker Compose")


def look_for(image: str) -> None:
    """Raises: NoContainers without an engine or the image."""
    try:
        looked = subprocess.run(
            ["docker", "image", "inspect", "-f", "{{.Id}}", image],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise NoContainers("there is no docker command") from None
    if looked.returncode:
        raise NoContainers(f"{looked.stderr.strip()}; `make test-containers` builds the images")
