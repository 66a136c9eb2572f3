"""A workspace in an object store, and what this machine has of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.object_store import Machine, Server, serving
from vizpub.runstore.stores import objects
from vizpub.runstore.stores.place import folder_of

BUCKET = "tests"


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    with serving() as server:
        server.make_bucket(BUCKET)
        yield server


@pytest.fixture
def server(one_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "a secret of tests",
        "AWS_ENDPOINT_URL": one_server.endpoint,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(objects, "_PAUSES_S", (0.01,) * 6)
    return one_server


@pytest.fixture
def machine(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The folder of the workspace on a machine of that name, which all later calls are on."""
    url = f"s3://{BUCKET}/{uuid4().hex}/ws"

    def go_to(name: str) -> Path:
        monkeypatch.setenv("VIZPUB_CACHE", str(tmp_path / name))
        return folder_of(url)

    return go_to


@pytest.fixture
def workspace(machine: Machine) -> Path:
    return machine("here")
