"""Claims on runs in a store."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from tests.support.object_store import Machine
from vizpub.model.errors import RunLocked
from vizpub.runstore.stores.claim import LEASE_S, Content, claimed, name_of_claim
from vizpub.runstore.stores.objects import Objects
from vizpub.runstore.stores.place import store_of


@pytest.fixture
def store(workspace: Path) -> Objects:
    found = store_of(workspace)
    assert found
    return found


def leave_claim(store: Objects, **changes: object) -> Content:
    """The claim of another machine's process, which ended without a word."""
    left = Content("process 7 on there", "there:/x", 2**50, time.time(), "one")
    left = msgspec.structs.replace(left, **changes)
    store.put_if(name_of_claim("lab"), msgspec.json.encode(left), None)
    return left


def test_claim_that_is_young_is_respected(store: Objects, tmp_path: Path) -> None:
    leave_claim(store)
    with pytest.raises(RunLocked, match="process 7 on there"), claimed(store, "lab", tmp_path):
        pass


@pytest.mark.parametrize(
    "changes", [{"renewed_s": time.time() - LEASE_S - 1}, {"renewed_s": 1e11}, {"released": True}]
)
def test_claim_that_ended_is_taken_with_a_later_epoch(
    store: Objects, tmp_path: Path, changes: dict[str, object]
) -> None:
    left = leave_claim(store, **changes)
    with claimed(store, "lab", tmp_path) as claim:
        assert claim.content.epoch > left.epoch
        claim.renew()


def test_claim_of_a_killed_process_here_is_taken_at_once(store: Objects, machine: Machine) -> None:
    directory = machine("here") / "runs" / "lab"
    with claimed(store, "lab", directory) as killed:
        with claimed(store, "lab", directory):
            pass
        with pytest.raises(RunLocked):
            killed.renew()


def test_claim_that_cannot_be_read_is_taken(store: Objects, tmp_path: Path) -> None:
    store.put_if(name_of_claim("lab"), b"{", None)
    with claimed(store, "lab", tmp_path):
        pass
