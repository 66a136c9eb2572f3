"""The record of the tests: for each of them, its seconds and what of the project it touches.

`pytest --record` writes it, `tests/support/selection.py` reads it. As a script with ledgers of the
long ring, which watches nothing, it records the seconds of their tests. A test touches a file if it
calls a function of the file or opens it, in any process (`tests/support/watched/`). What happens in
a fixture of a module or of the session counts for every test that uses the fixture.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vizpub import cypher

if TYPE_CHECKING:
    from tests.support.watched.sitecustomize import Watcher

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("record.json.gz")
WATCHED = Path(__file__).with_name("watched")


def key_of(test: pytest.Item | pytest.TestReport) -> str:
    """What a test is recorded as: the cases of a function as one, but each long case by itself."""
    return test.nodeid if "long" in test.keywords else test.nodeid.partition("[")[0]


@dataclass
class Record:
    """What the last recorded runs saw."""

    commit: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    """By the key of a test (`key_of`); those of which only this is known have no `touched`."""
    touched: dict[str, set[str]] = field(default_factory=dict)
    """Paths from the root of the project; a folder that was listed ends in a slash."""

    @classmethod
    def read(cls) -> Record:
        """The record of the checkout; an empty one if there is none."""
        if not RECORD.exists():
            return cls()
        content = json.loads(gzip.decompress(RECORD.read_bytes()))
        files = content["files"]
        rows = content["tests"].items()
        return cls(
            content["commit"],
            {test: seconds for test, (seconds, _) in rows},
            {test: {files[i] for i in at} for test, (_, at) in rows if at is not None},
        )

    def write(self) -> None:
        """The same bytes for the same record."""
        files = sorted(set().union(*self.touched.values()))
        place = {path: i for i, path in enumerate(files)}
        tests = {
            test: [
                round(seconds, 2),
                sorted(place[path] for path in self.touched[test])
                if test in self.touched
                else None,
            ]
            for test, seconds in sorted(self.seconds.items())
        }
        content = {"commit": self.commit, "files": files, "tests": tests}
        text = json.dumps(content, separators=(",", ":"))
        RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))

    def renew(self, other: Record) -> None:
        """Replaces what another run saw again; what is of removed files of tests goes."""
        self.commit = other.commit
        self.seconds |= other.seconds
        self.touched |= other.touched
        for test in list(self.seconds):
            if not (ROOT / test.partition("::")[0]).exists():
                del self.seconds[test]
                self.touched.pop(test, None)


class Notes:
    """Numbers what happens in one process of pytest, for the watchers of it and of its children."""

    current: Notes | None = None

    def __init__(self, folder: Path) -> None:
        Notes.current = self
        folder.mkdir(parents=True)
        self._folder = folder
        self._watcher = _watcher(folder)
        self._keys: list[str] = [""]
        self._uses: dict[str, set[str]] = defaultdict(set)

    @contextmanager
    def within(self, key: str) -> Iterator[None]:
        """Counts what happens in the block for the key, and the key for what is outside."""
        now = self._watcher.now
        before = now[0]
        self.use(key)
        self._keys.append(key)
        now[0] = len(self._keys) - 1
        try:
            yield
        finally:
            now[0] = before

    def use(self, key: str) -> None:
        """Counts what happened for the key for what is running, too."""
        self._uses[self._keys[self._watcher.now[0]]].add(key)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        cypher.statement.cache_clear()
        with self.within(key_of(item)):
            for name, definitions in item._fixtureinfo.name2fixturedefs.items():  # type: ignore[attr-defined]
                if definitions[-1].scope != "function":
                    self.use(_fixture(name, definitions[-1].baseid))
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        with self.within(key_of(item)):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        with self.within(key_of(item)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        with self.within(_fixture(fixturedef.argname, fixturedef.baseid)):
            return (yield)

    def pytest_sessionfinish(self) -> None:
        uses = {key: sorted(used) for key, used in self._uses.items()}
        (self._folder / "keys").write_text(json.dumps([self._keys, uses]))


def _watcher(folder: Path) -> Watcher:
    os.environ["VIZPUB_WATCHED"] = str(folder)
    from tests.support.watched.sitecustomize import Watcher

    watcher = Watcher(folder)
    watcher.start()
    return watcher


def _fixture(name: str, base: str) -> str:
    return f"fixture {name} of {base or 'all'}"


class Recorder:
    """Collects the notes of all processes, and the seconds, into the record."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vizpub-record-"))
        self._seconds: dict[str, float] = defaultdict(float)
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(WATCHED), os.environ.get("PYTHONPATH")])
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["record"] = str(self.folder / node.gateway.id)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[key_of(report)] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
        touched = touched_in(self.folder.iterdir())
        own = {test: touched.get(test, set()) for test in self._seconds}
        record = Record.read()
        known_good = record.commit if session.exitstatus else commit
        record.renew(Record(known_good, self._seconds, own))
        record.write()
        shutil.rmtree(self.folder)


def touched_in(folders: Iterable[Path]) -> dict[str, set[str]]:
    """What each key touched in the processes of these folders, with all that it uses."""
    own: dict[str, set[str]] = defaultdict(set)
    uses: dict[str, set[str]] = defaultdict(set)
    for folder in folders:
        keys, used = json.loads((folder / "keys").read_text())
        for key, others in used.items():
            uses[key] |= set(others)
        for line in (folder / "seen").read_text().splitlines():
            number, _, path = line.partition("\t")
            own[keys[int(number)]].add(path)
    return {key: set().union(*(own[each] for each in _closure(key, uses))) for key in uses[""]}


def passed_in(ledger: Path) -> Iterator[tuple[str, str, float]]:
    """For each test that passed: its name, the key that it is recorded as, its seconds."""
    for line in ledger.read_text("utf-8").splitlines():
        name, key, seconds = line.split("\t")
        yield name, key, float(seconds)


def seconds_in(ledgers: Iterable[Path]) -> dict[str, float]:
    """The seconds of each key in the ledgers."""
    total: dict[str, float] = defaultdict(float)
    for ledger in ledgers:
        for _, key, seconds in passed_in(ledger):
            total[key] += seconds
    return total


def _closure(key: str, uses: dict[str, set[str]]) -> set[str]:
    reached, left = {key}, [key]
    while left:
        new = uses.get(left.pop(), set()) - reached
        reached |= new
        left.extend(new)
    return reached


if __name__ == "__main__":
    record = Record.read()
    record.renew(Record(record.commit, seconds_in(map(Path, sys.argv[1:]))))
    record.write()
