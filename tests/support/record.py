"""The record of the tests: for each of them, its seconds and what of the project it touches.

`pytest --record` writes it, `tests/support/selection.py` reads it. As a script with ledgers of the
long ring, which watches nothing, it records the seconds of their tests. A test touches a file if it
calls a function of the file or opens it, in any process (`tests/support/watched/`). What happens in
a fixture of a module or of the session counts for every test that uses the fixture.

With a ledger (`--resume`), what was seen stays beside it until all have passed: a run that was
stopped, in whatever way, loses nothing of the tests that it finished.
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
from pathlib import Path, PurePath
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
        """The same bytes for the same record, without paths that are none of the project's."""
        files = sorted(set().union(*self.touched.values()) & project_paths(self.commit))
        place = {path: i for i, path in enumerate(files)}
        tests = {
            test: [
                round(seconds, 2),
                sorted(place[path] for path in self.touched[test] & place.keys())
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


def project_paths(commit: str) -> set[str]:
    """Paths that git knows, here or at a commit, and their folders, which end in a slash.

    What tests open beside them has names of one run: temporary files, caches, compiled code.
    """
    names = {
        name
        for words in (
            ["ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            ["ls-tree", "-r", "--name-only", "-z", commit],
        )
        for name in _git(*words).split("\0")
    }
    return names | {f"{folder}/" for name in names for folder in PurePath(name).parents}


def _git(*words: str) -> str:
    """What git prints; nothing where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout


class Notes:
    """Numbers what happens in one process of pytest, for the watchers of it and of its children."""

    current: Notes | None = None

    def __init__(self, folder: Path) -> None:
        Notes.current = self
        folder.mkdir(parents=True)
        self._keys = folder / "keys"
        self._watcher = _watcher(folder)
        self._numbers = 0

    @contextmanager
    def within(self, key: str) -> Iterator[None]:
        """Counts what happens in the block for the key, and the key for what is outside."""
        now = self._watcher.now
        before = now[0]
        self._numbers += 1
        self.use(key, self._numbers)
        now[0] = self._numbers
        try:
            yield
        finally:
            now[0] = before

    def use(self, key: str, number: int | None = None) -> None:
        """Counts what happened for the key for what is running, too. It is written down at once:
        the process may be killed.
        """
        with self._keys.open("a", encoding="utf-8") as file:
            file.write(json.dumps([self._watcher.now[0], key, number]) + "\n")

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

    def __init__(self, ledger: Path | None = None) -> None:
        self._ledger = ledger
        if ledger:
            self._notes = ledger.absolute().with_suffix(".notes")
            self._notes.mkdir(parents=True, exist_ok=True)
        else:
            self._notes = Path(tempfile.mkdtemp(prefix="vizpub-record-"))
        self.folder = Path(tempfile.mkdtemp(dir=self._notes))
        """For the notes of this run."""
        self._running: dict[str, float] = defaultdict(float)
        self._seconds: dict[str, float] = defaultdict(float)
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(WATCHED), os.environ.get("PYTHONPATH")])
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["record"] = str(self.folder / node.gateway.id)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._running[report.nodeid] += report.duration
        if report.when == "teardown":
            self._seconds[key_of(report)] += self._running.pop(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run that fails or is stopped may have seen less of a test than the record has, so it
        only adds; nor is its commit good.
        """
        record, seconds = Record.read(), dict(self._seconds)
        if self._ledger:
            before = seconds_in([self._ledger]) if self._ledger.is_file() else {}
            # Watched code takes up to some ten times as long: what is known of long tests stays.
            seconds |= before
            seconds |= {test: record.seconds[test] for test in seconds if test in record.seconds}
        touched = touched_in(self._notes.glob("*/*"))
        own = {test: touched[test] for test in seconds if test in touched}
        commit = _git("rev-parse", "HEAD").strip()
        if session.exitstatus:
            commit = record.commit
            own = {test: seen | record.touched.get(test, set()) for test, seen in own.items()}
        record.renew(Record(commit, seconds, own))
        record.write()
        if not (self._ledger and session.exitstatus):
            shutil.rmtree(self._notes)


def touched_in(folders: Iterable[Path]) -> dict[str, set[str]]:
    """What each key touched in the processes of these folders, with all that it uses."""
    own: dict[str, set[str]] = defaultdict(set)
    uses: dict[str, set[str]] = defaultdict(set)
    for folder in folders:
        if not (folder / "keys").exists():
            continue  # it was killed before its first test
        keys = {0: ""}
        for line in (folder / "keys").read_text("utf-8").splitlines():
            outer, key, number = json.loads(line)
            uses[keys[outer]].add(key)
            if number is not None:
                keys[number] = key
        for line in (folder / "seen").read_text("utf-8").splitlines():
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
