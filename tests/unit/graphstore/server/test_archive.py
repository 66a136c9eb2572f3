"""What is refused before a server is stopped for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.words import naming
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.archive import ALREADY_THERE, NO_DUMP, dump, restore
from vizpub.graphstore.server.offline import Command, Tool
from vizpub.model.errors import InputError, UseError
from vizpub.model.progress import silent


class Busy:
    """A place that nobody may stop."""

    def start(self) -> Connection:
        raise AssertionError

    @contextmanager
    def offline_tool(self) -> Iterator[Tool]:
        raise AssertionError
        yield

    @contextmanager
    def staging_folder(self) -> Iterator[Path]:
        raise AssertionError
        yield

    def load_lock(self) -> Path:
        raise AssertionError


def test_dump_onto_an_existing_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("dear")
    with pytest.raises(UseError, match=naming(file, ALREADY_THERE, "--force")):
        dump(Busy(), "neo4j", file, silent)
    assert file.read_text() == "dear"


def test_dump_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="No such file"):
        dump(Busy(), "neo4j", tmp_path / "nowhere" / "file", silent)


def test_failed_dump_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        dump(Busy(), "neo4j", tmp_path / "file", silent)
    assert list(tmp_path.iterdir()) == []


class Dumping(Tool):
    """A tool that prints a dump."""

    @contextmanager
    def command(self, *words: str) -> Iterator[Command]:
        yield Command([sys.executable, "-c", "print('DZV1 secret')"], "it")

    def share(self, folder: Path) -> str:
        raise AssertionError

    def finish_replacement(self, database: str) -> None:
        raise AssertionError


@dataclass
class Idle(Busy):
    """A place that may be stopped."""

    folder: Path

    @contextmanager
    def offline_tool(self) -> Iterator[Tool]:
        yield Dumping()

    def load_lock(self) -> Path:
        return Path(self.folder, "lock")


@pytest.mark.parametrize("name", ["monday", ".monday.new"])
@pytest.mark.parametrize("how", ["link", "file"])
def test_dump_is_written_into_nothing_that_others_made(tmp_path: Path, name: str, how: str) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / "monday"
    elsewhere.write_text("dear")
    elsewhere.chmod(0o666)
    # One who made the file may hold it open, as another name of it does.
    (tmp_path / name).symlink_to(elsewhere) if how == "link" else os.link(
        elsewhere, tmp_path / name
    )
    dump(Idle(tmp_path), "neo4j", file, silent, overwrite=True)
    assert elsewhere.read_text() == "dear"
    assert file.read_text() == "DZV1 secret\n"
    assert not file.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600


def test_dump_onto_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "monday"
    file.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UseError, match=naming(file, ALREADY_THERE, "--force")):
        dump(Idle(tmp_path), "neo4j", file, silent)
    assert file.is_symlink()


def test_dump_names_the_load_that_it_waits_for(tmp_path: Path) -> None:
    place, steps = Idle(tmp_path), list[str]()
    load = FileLock(place.load_lock())

    def end_load(step: str, done: int, total: int, note: str = "") -> None:
        steps.append(step)
        load.release()

    load.acquire()
    dump(place, "neo4j", tmp_path / "monday", end_load)
    assert steps == ["wait for another load"]


@pytest.mark.parametrize("content", [b"", b"DZ", b"hello, this is no dump"])
def test_file_that_is_no_dump_is_refused_by_restore(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match=naming(tmp_path / "file", NO_DUMP)):
        restore(Busy(), "neo4j", tmp_path / "file", silent)


def test_missing_file_is_refused_by_restore(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        restore(Busy(), "neo4j", tmp_path / "nowhere", silent)
