"""Which tests run: those that a change touches, a slice of the long ring, or what is left of it.

The record (`tests/support/record.py`) says what each test touches, and what it costs.
"""

from __future__ import annotations

import ast
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import PACKAGES, ROOT, real
from tests.support.record import Notes, Record, Recorder, key_of, passed_in

SLICES = 60
CHUNK_S, SLICE_S, TOUCHED_S = 60.0, 90.0, 30.0
"""Most seconds of one file's tests in a slice, of a test in it, and of those that a change adds."""
TRANSPARENT = {
    "abstractmethod", "cached_property", "classmethod", "contextmanager", "fixture", "override",
    "property", "staticmethod",
}  # fmt: skip
"""Decorators of functions that are seen when they are called; compiled ones are not."""
EVERYTHING = {
    *("requirements.lock", "machine/jvm/jvm.lock", "pyproject.toml", "tests/conftest.py"),
}
"""Files on which each test depends, whatever it touches."""
UNWATCHED = {"tests/support/record.py", "tests/support/watched/sitecustomize.py"}
"""What watches; whoever imports it may act otherwise when it changes."""


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise pytest.UsageError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def base_of(record: Record) -> str:
    """The newest commit that is known to be good: what `make ready` proved, or what was recorded.

    Raises: pytest.UsageError where the checkout has neither.
    """
    ready = ROOT / ".ready"
    for commit in (ready.read_text().strip() if ready.exists() else "", record.commit):
        # It need not be an ancestor: a commit that was amended is compared with as well.
        question = ["git", "cat-file", "-e", f"{commit}^{{commit}}"]
        if subprocess.run(question, cwd=ROOT, capture_output=True, check=False).returncode == 0:
            return commit
    raise pytest.UsageError("no commit to compare with; name one: --changed COMMIT")


def changed_since(base: str) -> dict[str, str | None]:
    """Paths that differ from a commit, with their content there; None where they are new."""
    names = _git("diff", "--name-only", "--no-renames", base).splitlines()
    new = _git("ls-files", "--others", "--exclude-standard").splitlines()
    there = set(_git("ls-tree", "-r", "--name-only", base).splitlines())
    return {
        name: _git("show", f"{base}:{name}") if name in there and name.endswith(".py") else None
        for name in [*names, *new]
    }


def _outside_functions(text: str) -> str:
    """What a module says outside its functions, and inside those that are compiled."""

    class Strip(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
            names = {
                ast.unparse(each).partition("(")[0].split(".")[-1] for each in node.decorator_list
            }
            return None if names <= TRANSPARENT else node

    return ast.dump(Strip().visit(ast.parse(text)))


def _shifts_others(path: str, before: str | None) -> bool:
    """Whether what imports a module may act otherwise without calling a function of it."""
    if not path.endswith(".py") or not (ROOT / path).exists() or before is None:
        return False
    after = (ROOT / path).read_text("utf-8")
    return path in UNWATCHED or _outside_functions(before) != _outside_functions(after)


def importers() -> dict[str, set[str]]:
    """For each module's path, the paths of those that import it or from it."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in (*PACKAGES, "tests"):
        for path in (ROOT / name).rglob("*.py"):
            here = str(path.relative_to(ROOT))
            for module in _imported(ast.parse(path.read_text("utf-8")), Path(here)):
                for place in (f"{module}.py", f"{module}/__init__.py"):
                    found[real(place)].add(here)
    return found


def _imported(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.replace(".", "/") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            module = node.module.replace(".", "/")
            if node.level:
                module = f"{path.parents[node.level - 1]}/{module}"
            yield module
            yield from (f"{module}/{alias.name}" for alias in node.names)


def reach_of(changes: dict[str, str | None]) -> set[str]:
    """The files by which a test is touched: changed ones, their folders where they came or went,
    and importers of those whose constants or classes are others."""
    reach = set(changes)
    shifting = {path for path, before in changes.items() if _shifts_others(path, before)}
    if shifting:
        importing = importers()
        for path in shifting:
            direct = importing[path]
            packages = {each for each in direct if each.endswith("/__init__.py")}
            reach |= direct.union(*(importing[each] for each in packages))
    for path, before in changes.items():
        if before is None or not (ROOT / path).exists():
            reach.add(f"{Path(path).parent}/")
    return reach


def touched_by(changes: dict[str, str | None], record: Record) -> Callable[[str], bool]:
    """Whether a test is touched by changes; one that is not recorded is."""
    if EVERYTHING & set(changes):
        return lambda test: True
    reach = reach_of(changes)
    return lambda test: (
        test not in record.touched
        or _file(test) in changes
        or not reach.isdisjoint(record.touched[test])
    )


def slices_of(tests: Iterable[str], seconds: dict[str, float]) -> dict[str, int]:
    """The slice of each test; those that take longer than a slice may, or whose seconds are not
    recorded, are in none.

    The tests of a file stay together as far as they fit, for their fixtures.
    """
    chunks: list[tuple[float, list[str]]] = []
    for _, of_file in groupby(sorted(set(tests)), _file):
        chunk, cost = [], 0.0
        for test in of_file:
            own = seconds.get(test, inf)
            if own > SLICE_S:
                continue
            if chunk and cost + own > CHUNK_S:
                chunks.append((cost, chunk))
                chunk, cost = [], 0.0
            chunk.append(test)
            cost += own
        chunks.append((cost, chunk))
    load = [0.0] * SLICES
    place: dict[str, int] = {}
    for cost, chunk in sorted(chunks, key=lambda each: (-each[0], each[1])):
        least = load.index(min(load))
        load[least] += cost
        place |= dict.fromkeys(chunk, least)
    return place


def chosen_slice(tests: set[str], commit: str, record: Record) -> set[str]:
    """One slice of the long tests, chosen by a commit, and some that the change touches.

    These are taken as long as they fit: first those that touch the fewest files, as they tell most.
    Tests of which it is not recorded what they touch are in slices alone.
    """
    place = slices_of(tests, record.seconds)
    chosen = {test for test in tests if place.get(test) == int(commit[:8], 16) % SLICES}
    touched = touched_by(changed_since(base_of(record)), record)
    left = TOUCHED_S
    known = tests.intersection(record.touched) - chosen
    for test in sorted(known, key=lambda test: (len(record.touched[test]), test)):
        cost = record.seconds.get(test, inf)
        if cost <= left and touched(test):
            left -= cost
            chosen.add(test)
    return chosen


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rings of tests")
    group.addoption("--record", action="store_true", help="what each test touches and costs")
    group.addoption(
        "--changed", nargs="?", const="", metavar="COMMIT",
        help="only tests that changes since this commit touch (default: the newest good one)",
    )  # fmt: skip
    group.addoption(
        "--slice", metavar="COMMIT", help="of the long ones, a slice that the commit chooses"
    )
    group.addoption(
        "--resume", metavar="FILE", help="leave out what passed, as FILE says; add to it"
    )


def choice(config: pytest.Config, tests: set[str], long: set[str], record: Record) -> set[str]:
    """The tests that the options choose of these, some of which are long."""
    since: str | None = config.getoption("--changed")
    if since is not None:
        touched = touched_by(changed_since(since or base_of(record)), record)
        tests = {test for test in tests if touched(test)}
    if commit := config.getoption("--slice"):
        sliced = chosen_slice(tests & long, _git("rev-parse", commit).strip(), record)
        tests = (tests - long) | sliced
    return tests


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes out the items that the options do not choose."""
    record = Record.read()
    long = {key_of(item) for item in items if "long" in item.keywords}
    chosen = choice(config, {key_of(item) for item in items}, long, record)
    passed = _passed(config)
    kept, left = [], []
    for item in items:
        wanted = key_of(item) in chosen and item.nodeid not in passed
        (kept if wanted else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def _file(test: str) -> str:
    return test.partition("::")[0]


def _passed(config: pytest.Config) -> set[str]:
    """What is in the ledger; all processes go by what the first one read."""
    if hasattr(config, "workerinput"):
        return set(config.workerinput.get("passed", ()))
    path = Path(config.getoption("--resume") or "")
    return {name for name, _, _ in passed_in(path)} if path.is_file() else set()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        if folder := config.workerinput.get("record"):
            config.pluginmanager.register(Notes(Path(folder)))
        return
    ledger = Path(config.getoption("--resume")) if config.getoption("--resume") else None
    if config.getoption("--record"):
        recorder = Recorder(ledger)
        config.pluginmanager.register(recorder)
        if not config.getoption("numprocesses", None):
            config.pluginmanager.register(Notes(recorder.folder / "alone"))
    if ledger:
        config.pluginmanager.register(Ledger(ledger, _passed(config)))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A change that touches no test is no failure, nor is a ring of which no test is left."""
    options = [session.config.getoption(name) for name in ("--changed", "--resume")]
    if options != [None, None] and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


class Ledger:
    """Adds each test that ended well to a file, as it ends, with what it is recorded as and its
    seconds; what was killed is run again. Failures stand beside it long before pytest prints them.
    """

    def __init__(self, path: Path, passed: set[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._passed = sorted(passed)
        self._outcomes: dict[str, set[str]] = defaultdict(set)
        self._seconds: dict[str, float] = defaultdict(float)
        self._began = time.time()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["passed"] = self._passed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes[report.nodeid].add(report.outcome)
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            with self._path.with_suffix(".failures").open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\n{report.longreprtext}\n\n")
        if report.when == "teardown" and self._outcomes[report.nodeid] == {"passed"}:
            with self._path.open("a", encoding="utf-8") as file:
                seconds = self._seconds[report.nodeid]
                file.write(f"{report.nodeid}\t{key_of(report)}\t{seconds:.2f}\n")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Writes the result beside the ledger: a line of JSON for each run."""
        failed = sorted(test for test, seen in self._outcomes.items() if "failed" in seen)
        result = {
            "tests": len(self._outcomes),
            "passed before": len(self._passed),
            "failed": failed,
            "seconds": round(time.time() - self._began),
            "status": int(exitstatus),
        }
        with self._path.with_suffix(".json").open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
