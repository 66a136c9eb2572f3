"""When an import pays, and a disk that has no room for its files."""

from __future__ import annotations

import base64
import errno
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.tables import Batches
from vizpub.graphstore.load import bulk
from vizpub.graphstore.load.bulk import EmptyDatabase, import_pays, import_run, transaction_of
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.offline import Tool
from vizpub.model.clock import Clock
from vizpub.model.errors import DiskFull
from vizpub.model.run import RunFacts


@pytest.mark.parametrize(
    ("rows", "paying"),
    [({}, False), ({"links": 99}, False), ({"links": 60, "receptions": 40}, True)],
)
def test_import_pays_by_the_row_count_of_all_tables(
    rows: dict[str, int], paying: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "PAYING_ROWS", 100)

    told = {name: [{}] * count for name, count in rows.items()}
    assert import_pays(Batches(told)) == paying


class Full:
    """A place without room, whose server nobody may stop."""

    def start(self) -> Connection:
        raise AssertionError

    def offline_tool(self) -> AbstractContextManager[Tool]:
        raise AssertionError

    def staging_folder(self) -> AbstractContextManager[Path]:
        return nullcontext(Path("/full"))


def test_full_disk_is_an_error_before_the_server_stops() -> None:
    class NoRoom(Batches):
        def row_groups(self, name: str) -> Iterator[tuple[str, pa.RecordBatch]]:
            raise OSError(errno.ENOSPC, "No space left on device")

    facts = RunFacts("full", "synthetic", Clock())
    with pytest.raises(DiskFull, match="/full: "):
        import_run(Full(), EmptyDatabase("neo4j", 3), facts, NoRoom({}))


@pytest.mark.parametrize(
    ("packed", "number"),
    [
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\xc9\x00\xc8", 200),
        (b"\xca\x00\x01\x00\x00", 65_536),
        (b"\xcb" + (2**40).to_bytes(8, "big"), 2**40),
    ],
)
def test_transaction_of_a_bookmark_is_read_in_every_width(packed: bytes, number: int) -> None:
    content = b"\x91\xcc\x10" + bytes(range(16)) + packed + b"\x90"
    assert transaction_of("FB:" + base64.b64encode(content).decode()) == number
