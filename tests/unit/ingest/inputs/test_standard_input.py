"""Standard input as a file, for as long as it is ingested."""

from __future__ import annotations

import gzip
import io
import os
import pty
from errno import EIO, ENOSPC
from pathlib import Path

import pytest

from tests.support.permissions import as_a_user
from tests.support.words import naming
from vizpub.ingest.inputs import standard_input
from vizpub.ingest.inputs.files import UNREADABLE, find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.inputs.standard_input import EMPTY, NOTHING_PIPED, stdin_as_file
from vizpub.ingest.sources import SOURCES
from vizpub.machine.locks import OF_STDIN
from vizpub.model.errors import DiskFull, InputError, UseError
from vizpub.runstore.leftovers import SCRATCH, sweep

EDGES = b"src,dst\n1,2\n"


def piped(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content))


@pytest.mark.parametrize(
    ("content", "name"), [(EDGES, "stdin"), (gzip.compress(EDGES, mtime=0), "stdin.gz")]
)
def test_stdin_is_a_file_that_is_recognised_and_then_gone(
    tmp_path: Path, content: bytes, name: str
) -> None:
    with stdin_as_file(["other", "-"], piped(content), tmp_path / "scratch") as (other, path):
        assert (other, Path(path).name) == ("other", name)
        assert Path(path).read_bytes() == content
        found = take_inventory(None, find_files([path]), SOURCES)
        assert (found.source, [file.encoding for file in found.files]) == (
            "edges",
            ["csv(src,dst)"],
        )
    assert list((tmp_path / "scratch").iterdir()) == []


def test_stdin_is_only_read_where_it_is_asked_for(tmp_path: Path) -> None:
    stream = piped(EDGES)
    with stdin_as_file(["a", "./-"], stream, tmp_path / "scratch") as paths:
        assert paths == ("a", "./-")
    assert stream.buffer.tell() == 0
    assert not (tmp_path / "scratch").exists()


def test_empty_stdin_and_terminals_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=EMPTY),
        stdin_as_file(["-"], piped(b""), tmp_path),
    ):
        pass
    ours, theirs = pty.openpty()
    with (
        os.fdopen(theirs, "r") as terminal,
        pytest.raises(UseError, match=NOTHING_PIPED),
        stdin_as_file(["-"], terminal, tmp_path),
    ):
        pass
    os.close(ours)
    with pytest.raises(UseError, match=NOTHING_PIPED), stdin_as_file(["-"], None, tmp_path):
        pass  # closed by the shell: <&-


def test_stdin_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Nothing is mapped at the beginning of a process' memory."""
    with (
        open("/proc/self/mem", encoding="utf-8") as stream,
        pytest.raises(InputError, match=f"{UNREADABLE}: {os.strerror(EIO)}"),
        stdin_as_file(["-"], stream, tmp_path),
    ):
        pass


def test_stdin_that_finds_no_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*files: object) -> None:
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr(standard_input, "copyfileobj", full)
    with (
        pytest.raises(DiskFull, match=naming(tmp_path)),
        stdin_as_file(["-"], piped(EDGES), tmp_path),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_stdin_in_a_workspace_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with (
        as_a_user(),
        pytest.raises(UseError, match=naming(tmp_path / "scratch", "Permission denied")),
        stdin_as_file(["-"], piped(EDGES), tmp_path / "scratch"),
    ):
        pass
    tmp_path.chmod(0o700)


def test_stdin_of_a_killed_command_is_swept(tmp_path: Path) -> None:
    left = tmp_path / SCRATCH / f"{OF_STDIN}-0123"
    left.mkdir(parents=True)
    (left / "stdin").write_bytes(EDGES)
    (left.parent / f".{left.name}.lock").touch()
    sweep(tmp_path)
    assert not left.exists()
