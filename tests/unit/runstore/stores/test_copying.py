"""Copies of runs in other workspaces."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path

import pytest

from tests.support.object_store import Fault, Machine, Server, ingest_links, object_of
from tests.support.tables import links
from vizpub.machine.files import replacing
from vizpub.model.errors import DiskFull, ServiceError, StoreBroken, UseError
from vizpub.runstore import integrity, writer
from vizpub.runstore.integrity import damages
from vizpub.runstore.journal import FILE as JOURNAL
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.stores import copying
from vizpub.runstore.stores.copies import crc_of
from vizpub.runstore.stores.copying import copy_run

SENDS = ("PUT", "RENAME")
"""How the request begins after which an object is there."""


def is_whole(run: StoredRun, other: StoredRun) -> bool:
    is_equal = run.read("links").equals(other.read("links"))
    return is_equal and not any(damages(other.directory, other.manifest))


def test_run_goes_to_a_store_and_back(run: StoredRun, machine: Machine, tmp_path: Path) -> None:
    copied = copy_run(run, machine("here"))
    assert is_whole(run, copied)
    back = copy_run(open_run(machine("elsewhere"), "monday"), tmp_path / "back", "lab")
    assert (back.name, back.manifest.view != "") == ("lab", True)
    assert is_whole(run, back)
    for path in back.directory.rglob("*.parquet"):  # the copies share no bytes
        path.write_bytes(b"")
    assert is_whole(run, open_run(machine("elsewhere"), "monday"))


@pytest.mark.parametrize("small", [0, integrity.SMALL_FILE])
def test_bytes_of_a_copy_are_compared_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(integrity, "SMALL_FILE", small)
    ingest_links(tmp_path / "ws", links(100, seed=1))
    run = open_run(tmp_path / "ws", "monday")
    read: Counter[str] = Counter()

    def counting(path: Path, start: int = 0) -> int:
        read[path.suffix] += tmp_path / "back" in path.parents
        return crc_of(path, start)

    for module in (integrity, copying):
        monkeypatch.setattr(module, "crc_of", counting)
    monkeypatch.setattr(copying, "open_run", lambda *_: None)
    copy_run(run, tmp_path / "back")
    names = [file.name for part in run.manifest.parts for file in part.files or ()]
    assert sum(read.values()) == len(names) > 0


def test_copy_that_is_there_is_not_made_again(
    run: StoredRun, machine: Machine, server: Server
) -> None:
    copy_run(run, machine("here"))
    with server.counting() as requests:
        copy_run(run, machine("elsewhere"))
    assert not any("/data/" in request for request in requests)


def test_other_run_of_that_name_is_replaced_on_request(
    run: StoredRun, machine: Machine, server: Server
) -> None:
    ingest_links(machine("here"), links(9, seed=5))
    with pytest.raises(UseError, match="--replace"):
        copy_run(run, machine("here"))
    assert is_whole(run, copy_run(run, machine("here"), replaces=True))
    with pytest.raises(UseError, match="--as"):
        copy_run(open_run(machine("here"), "monday"), machine("here"))


def spoil(path: Path) -> None:
    """Flip bits in a page: only a check of the whole file sees it."""
    content = bytearray(path.read_bytes())
    content[8] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("fault", ["damaged", "full", "full at the end"])
def test_copy_stays_whole_when_it_cannot_be_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(integrity, "SMALL_FILE", 0)
    ingest_links(tmp_path / "ws", links(100, seed=1))
    run = open_run(tmp_path / "ws", "monday")
    (run.directory / JOURNAL).write_text("first\n")
    back = copy_run(run, tmp_path / "back")
    before = back.read("links")
    ingest_links(tmp_path / "ws", links(100, seed=2))
    run = open_run(tmp_path / "ws", "monday")
    (run.directory / JOURNAL).write_text("first\nsecond\n")
    if fault == "damaged":
        spoil(run.files("links")[0])
    elif fault == "full":
        monkeypatch.setattr(shutil, "copyfile", full)
    else:
        monkeypatch.setattr(writer, "write_manifest", full)
    with pytest.raises(StoreBroken if fault == "damaged" else DiskFull):
        copy_run(run, tmp_path / "back", replaces=True)
    back = open_run(tmp_path / "back", "monday")
    assert back.read("links").equals(before)
    assert not any(damages(back.directory, back.manifest))
    assert (back.directory / JOURNAL).read_text() == "first\n"


def full(*to: object) -> None:
    raise OSError(ENOSPC, "no space left", str(to[-1]))


def test_log_that_cannot_be_written_fails_no_copy(
    run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.directory / JOURNAL).write_text("first\n")
    copy = shutil.copyfile
    monkeypatch.setattr(
        shutil, "copyfile", lambda path, to: (full if to.name == JOURNAL else copy)(path, to)
    )
    assert is_whole(run, copy_run(run, tmp_path / "back"))


def test_damaged_copy_is_repaired_and_survives_damage_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "SMALL_FILE", 0)
    ingest_links(tmp_path / "ws", links(100, seed=1))
    run = open_run(tmp_path / "ws", "monday")
    back = copy_run(run, tmp_path / "back")
    for spoiling in (spoil, Path.unlink):
        spoiling(back.files("links")[0])
        assert any(damages(back.directory, back.manifest))
        assert is_whole(run, copy_run(run, tmp_path / "back", replaces=True))
    folder = back.files("links")[0].parent
    with suppress(KeyboardInterrupt), replacing(folder / "killed.parquet") as new:
        left = new.with_name(new.name.replace("killed", "older"))
        left.write_bytes(b"half")
        raise KeyboardInterrupt
    kept = run.read("links")
    spoil(run.files("links")[0])
    assert copy_run(run, tmp_path / "back", replaces=True).read("links").equals(kept)
    assert not left.exists()


def test_damaged_run_is_not_copied(run: StoredRun, machine: Machine) -> None:
    damaged = run.files("links")[0]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreBroken):
        copy_run(run, machine("here"))


def test_interrupted_copy_sends_no_file_twice(
    run: StoredRun, machine: Machine, server: Server
) -> None:
    sent: list[str] = []

    def breaking(request: str) -> Fault | None:
        if "/data/" in request and request.startswith(SENDS) and sent[1:]:
            return "expired"
        if "/data/" in request and request.startswith(SENDS):
            sent.append(request)
        return None

    with server.failing(breaking), pytest.raises(ServiceError):
        copy_run(run, machine("here"))
    with server.counting() as requests:
        assert is_whole(run, copy_run(run, machine("here")))
    again = [request for request in requests if request.startswith(SENDS)]
    assert {object_of(request) for request in again if "/data/" in request}
    assert not {*sent} & {*again}
