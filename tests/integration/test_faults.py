"""What goes wrong with a server, as who uses it sees it: a clear line, what to do, code 3.

One server for all, on a disk of its own. The tests go on where the one before ended.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import psutil
import pytest
from typer.testing import CliRunner

from tests.integration.graph.conftest import random_history
from tests.support.words import tells
from vizpub.cli.main import app
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.driver_errors import STOPPED
from vizpub.graphstore.server.server import LocalServer
from vizpub.graphstore.server.sessions import LOST, REPEAT
from vizpub.graphstore.verify.verify import verify_run
from vizpub.model.errors import Neo4jUnavailable, ServiceError

pytestmark = pytest.mark.neo4j

HISTORY = random_history(3, name="faults", peers=40, intervals=120)
SLOW = "UNWIND range(1, 100000000000) AS x RETURN sum(x % 7) AS slow"


@dataclass(frozen=True)
class Place:
    """A workspace whose Neo4j is on a small disk, where one can be had."""

    folder: Path
    is_small: bool

    @property
    def home(self) -> Path:
        return self.folder / "neo4j"

    @property
    def server(self) -> LocalServer:
        return LocalServer(self.home, "test")

    def start(self) -> Connection:
        return self.server.start()

    def __call__(self, *words: str, **environment: str) -> str:
        """What a command tells that cannot reach the server."""
        call = ["--quiet", "--workspace", str(self.folder), *words]
        result = CliRunner().invoke(app, call, env=environment)
        assert result.exit_code == 3, result.output
        assert result.stdout == ""
        check_told(result.stderr)
        return result.stderr


class Seen(subprocess.Popen[Any]):
    """A program that is started, the words of which others can see."""

    words: ClassVar[list[str]] = []

    def __init__(self, args: Sequence[str | Path], **options: Any) -> None:
        self.words.extend(map(str, args))
        super().__init__(args, **options)


def check_told(told: str) -> None:
    """A line that says what is wrong, and what to do: nothing that only programmers read."""
    assert told.startswith("error: Neo4j at ")
    assert "\n  " in told
    assert "Traceback" not in told
    assert "\tat " not in told


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("faults")
    with _small_disk() as disk, pytest.MonkeyPatch.context() as patch:
        place = Place(folder, disk is not None)
        if disk:
            place.home.symlink_to(disk)
        patch.setattr(subprocess, "Popen", Seen)
        for name in ("URI", "USERNAME", "USER", "PASSWORD", "PASSWORD_FILE", "DATABASE"):
            patch.delenv(f"NEO4J_{name}", raising=False)
        try:
            place.start()
        except ServiceError as error:
            if os.environ.get("REQUIRE_NEO4J") == "1":
                raise
            pytest.skip(f"no local server: {error}")
        yield place
        place.server.stop()


@contextmanager
def _small_disk() -> Iterator[Path | None]:
    """A disk of 100 MB, null where none can be mounted: that takes root.

    It is not where pytest clears away what is old, and goes whoever still looks at it.
    """
    with TemporaryDirectory(prefix="vizpub-faults-") as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=100m,mode=700", "vizpub-faults", folder]
        if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
            yield None
            return
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.long
def test_wrong_password_error_says_what_to_check(place: Place) -> None:
    right = place.start()
    given = {"NEO4J_URI": right.uri, "NEO4J_PASSWORD": "gue55ed"}
    for words in (("query", "runs"), ("--debug", "cypher", "RETURN 1")):
        result = CliRunner().invoke(app, words, env=given)
        assert result.exit_code == 3
        tells(result.stderr, "'neo4j'", "NEO4J_USERNAME", "NEO4J_PASSWORD")
        assert "gue55ed" not in result.output


@pytest.mark.long
def test_full_disk_error_names_the_disk_and_load_resumes(place: Place) -> None:
    if not place.is_small:
        pytest.skip("a small disk cannot be mounted here: that takes root")
    filler = place.home / "filler"
    with connect(place.start()) as driver:
        _fill(filler, 1_000_000)
        with pytest.raises(Neo4jUnavailable, match=STOPPED) as error:
            load_run(driver, "neo4j", HISTORY.facts, HISTORY.tables)
        tells(error.value.hint, "vizpub neo4j stop")
    tells(place("query", "runs"), STOPPED)
    place.server.stop()
    _fill(place.home / "filler.2", 1_000_000)
    assert "MB left, and a start needs 20\n  free some space" in place("query", "runs")
    filler.unlink()
    with connect(place.start()) as driver:
        assert not load_run(driver, "neo4j", HISTORY.facts, HISTORY.tables).already_complete
        assert verify_run(driver, "neo4j", HISTORY.facts, HISTORY.tables) == []


def _fill(file: Path, left: int) -> None:
    """A file that leaves so many bytes of the disk, if it has more."""
    size = shutil.disk_usage(file.parent).free - left
    with file.open("wb") as out:
        if size > 0:
            os.posix_fallocate(out.fileno(), 0, size)


@pytest.mark.long
def test_killed_server_during_a_query_is_a_lost_connection(place: Place) -> None:
    connection = place.start()
    command = [
        "-m",
        "vizpub.cli",
        "--workspace",
        str(place.folder),
        "cypher",
        SLOW,
        "--timeout",
        "9m",
    ]
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as asking:
        _wait_until_asked(connection)
        psutil.Process(place.server.status().pid).kill()
        out, told = asking.communicate(timeout=120)
    assert (asking.returncode, out) == (3, "")
    check_told(told)
    tells(told, LOST, REPEAT)


def _wait_until_asked(connection: Connection) -> None:
    listed = "SHOW TRANSACTIONS YIELD currentQuery WHERE currentQuery STARTS WITH 'UNWIND' RETURN 1"
    with connect(connection) as driver:
        while not driver.execute_query(listed, database_="system").records:
            time.sleep(0.1)


@pytest.mark.long
@pytest.mark.parametrize("database", ["neo4j", "system"])
def test_broken_store_error_says_what_to_do(place: Place, database: str) -> None:
    place.server.stop()
    broken = place.home / "data" / "databases" / database
    for file in broken.glob("neostore*"):
        if file.is_file():
            file.write_bytes(b"\xaa" * 8192)
    told = place("query", "runs")
    assert "start" in told
    tells(told, "vizpub neo4j remove")
    assert place.server.status().state == "stopped"


@pytest.mark.long
def test_password_is_absent_from_commands_and_logs(place: Place) -> None:
    password = (place.home / "password").read_text()
    assert any(word.startswith("--home-dir=") for word in Seen.words)
    assert f"@{(place.home / 'password').resolve()}" in Seen.words
    assert not any(password in word for word in Seen.words)
    for log in (place.home / "logs").iterdir():
        assert password not in log.read_text("utf-8", "replace")
        assert "gue55ed" not in log.read_text("utf-8", "replace")
