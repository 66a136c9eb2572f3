"""What the tests themselves stand on: names, skips, the record, and which of them run."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import results, selection
from tests.support.ids import id_of, refuse_addresses
from tests.support.project import ROOT
from tests.support.record import WATCHED, Record, Recorder, seconds_in, touched_in
from tests.support.scheduling import NEW_S, cost_of_files, rank_of, size_of, turn_of
from tests.support.skips import judged


def skipped(reason: str) -> Any:
    report = pytest.TestReport("a.py::b", ("a.py", 1, "b"), {}, "skipped", None, "call")
    report.longrepr = ("a.py", 1, f"Skipped: {reason}")
    return report


class TestSkips:
    @pytest.mark.parametrize(
        "reason", ["VIZPUB_DATA is not set: data", "no Gephi: no jars", "no Chromium: none of x"]
    )
    def test_skip_for_a_listed_reason_stays_a_skip(
        self, reason: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUIRE_LISTED_SKIPS", "1")
        assert judged(skipped(reason)).outcome == "skipped"

    def test_skip_for_another_reason_is_a_failure_when_required(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("REQUIRE_LISTED_SKIPS", raising=False)
        assert judged(skipped("no Neo4j: gone")).outcome == "skipped"
        monkeypatch.setenv("REQUIRE_LISTED_SKIPS", "1")
        report = judged(skipped("no Neo4j: gone"))
        assert report.outcome == "failed"
        assert "no Neo4j: gone" in str(report.longrepr)

    def test_expected_failure_is_not_judged_as_a_skip(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REQUIRE_LISTED_SKIPS", "1")
        report = skipped("no reason")
        report.wasxfail = "known"
        assert judged(report).outcome == "skipped"


class TestNames:
    @pytest.mark.parametrize("value", [b"\x1f\x8b\x08", "a\x1bb", "a\nb"])
    def test_id_of_an_unreadable_value_is_the_argument_name(self, value: object) -> None:
        assert id_of(value, "content") == "content"

    @pytest.mark.parametrize("value", ["a", "日本", 3, None, ["a"]])
    def test_id_of_a_readable_value_is_left_to_pytest(self, value: object) -> None:
        assert id_of(value, "content") is None

    def test_object_address_in_a_test_id_is_refused(self) -> None:
        named: Any = SimpleNamespace(nodeid=f"a.py::b[{object()!r}]")
        with pytest.raises(pytest.UsageError, match=r"a\.py::b"):
            refuse_addresses([named])


def run_watched(folder: Path, code: str) -> set[str]:
    """What a Python process touches, as its watcher writes it down."""
    environment = {**os.environ, "PYTHONPATH": str(WATCHED), "VIZPUB_WATCHED": str(folder)}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    return {line.partition("\t")[2] for line in (folder / "seen").read_text().splitlines()}


class TestRecord:
    def test_watcher_sees_called_functions_opened_files_and_listed_folders(
        self, tmp_path: Path
    ) -> None:
        code = (
            "from vizpub import cypher; cypher.statement('queries', 'overlay'); "
            "import vizpub.runstore.store"
        )
        touched = run_watched(tmp_path, code)
        assert {"cypher/__init__.py", "cypher/queries/overlay.cypher", "cypher/queries/"} <= touched
        assert "cypher/queries/topic.cypher" not in touched

    def test_watcher_sees_what_happens_in_a_child(self, tmp_path: Path) -> None:
        code = (
            "import subprocess, sys; subprocess.run([sys.executable, '-m', 'vizpub.model.clock'])"
        )
        assert "model/clock.py" in run_watched(tmp_path, code)

    def test_fixture_counts_for_every_test_that_uses_it(self, tmp_path: Path) -> None:
        fixture = "fixture x of all"
        keys = [(0, "a.py::one", 1), (1, fixture, None), (1, fixture, 2), (0, "a.py::two", 3)]
        note(tmp_path / "gw0", [*keys, (3, fixture, None)], ["z.py", "b.py", "c.py", "d.py"])
        assert touched_in([tmp_path / "gw0"]) == {
            "a.py::one": {"b.py", "c.py"},
            "a.py::two": {"c.py", "d.py"},
        }

    def test_seconds_of_a_test_are_those_of_its_phases(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYTHONPATH", "")  # it is put back
        recorder = Recorder(tmp_path / "ledger.txt")
        for when in ("setup", "call", "teardown"):
            for case in (1, 2):
                recorder.pytest_runtest_logreport(report(f"a.py::x[{case}]", when, "passed"))
        assert recorder._seconds == {"a.py::x": 6 * 0.25}

    def test_record_is_read_as_it_was_written_and_forgets_removed_files(
        self, record_file: Path
    ) -> None:
        assert Record.read() == Record()
        gone, long = "tests/gone.py::test_y", f"{HERE}[long]"
        seconds = {HERE: 1.5, gone: 2.0, long: 9.0}
        record = Record("c0ffee", seconds, {HERE: {"Makefile", "cypher/"}, gone: {"Makefile"}})
        record.write()
        assert Record.read() == record
        record.renew(Record("beef", {HERE: 3.0}, {HERE: {"LICENSE"}}))
        assert record == Record("beef", {HERE: 3.0, long: 9.0}, {HERE: {"LICENSE"}})

    def test_record_keeps_paths_that_git_knows_and_their_folders(self, record_file: Path) -> None:
        ours = {"", "tests/", "tests/unit/", "tests/unit/test_support.py", "vizpub/model"}
        beside = {
            "tmpa1b2",
            "tests/unit/__pycache__/",
            "build/x.json",
            "model/clock.cpython-311.pyc",
        }
        Record("c0ffee", {HERE: 1.0}, {HERE: ours | beside}).write()
        assert Record.read().touched == {HERE: ours}
        assert not re.search(b"tmpa1b2|build", gzip.decompress(record_file.read_bytes()))

    def test_recording_that_was_stopped_keeps_what_it_saw_of_finished_tests(
        self, record_file: Path, tmp_path: Path
    ) -> None:
        """It is killed at its second test. The next run is stopped; the third one passes."""
        Record("c0ffee", {ONE: 1.0}, {ONE: {"README.md"}}).write()
        ledger = tmp_path / "long/head.record.txt"
        fixture = "fixture x of all"
        used = [(0, ONE, 1), (1, fixture, 2), (0, TWO, 3), (3, fixture, None)]
        note(Recorder(ledger).folder / "gw0", used, ["", "LICENSE", "CHANGELOG.md", "SECURITY.md"])
        ledger.write_text(f"{ONE}\t{ONE}\t9.00\n")

        stopped = Recorder(ledger)
        note(stopped.folder / "gw0", [(0, TWO, 1)], ["", "Makefile"])
        stopped.pytest_runtest_logreport(report(TWO, "setup", "passed"))
        stopped.pytest_sessionfinish(ended(pytest.ExitCode.INTERRUPTED))
        first = {"README.md", "LICENSE", "CHANGELOG.md"}
        assert Record.read() == Record("c0ffee", {ONE: 1.0}, {ONE: first})

        last = Recorder(ledger)
        note(last.folder / "gw1", [(0, TWO, 1), (1, fixture, None)], ["", "ARCHITECTURE.md"])
        for when in ("setup", "call", "teardown"):
            last.pytest_runtest_logreport(report(TWO, when, "passed"))
        last.pytest_sessionfinish(ended(pytest.ExitCode.OK))
        seen = {"SECURITY.md", "CHANGELOG.md", "Makefile", "ARCHITECTURE.md"}
        record = Record.read()
        assert record.touched == {ONE: {"LICENSE", "CHANGELOG.md"}, TWO: seen}
        assert record.seconds == {ONE: 1.0, TWO: 0.75}
        assert record.commit != "c0ffee"
        assert [path.name for path in ledger.parent.iterdir()] == [ledger.name]


HERE = "tests/unit/test_support.py::test_x"
ONE, TWO = f"{HERE}_one", f"{HERE}_two"


@pytest.fixture
def record_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the record is instead, in an environment that recorders may change."""
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr("tests.support.record.RECORD", tmp_path / "record.json.gz")
    return tmp_path / "record.json.gz"


def note(folder: Path, keys: list[tuple[int, str, int | None]], seen: list[str]) -> None:
    """What a process writes down: what ran in what, and the file that each number touched."""
    folder.mkdir()
    (folder / "keys").write_text("".join(f"{json.dumps(each)}\n" for each in keys))
    lines = [f"{number}\t{path}\n" for number, path in enumerate(seen) if path]
    (folder / "seen").write_text("".join(lines))


def ended(status: pytest.ExitCode) -> Any:
    return SimpleNamespace(exitstatus=status)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with a constant and a function, and two that import it."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/a.py").write_text(BEFORE)
    (tmp_path / "model/b.py").write_text("from vizpub.model.a import LEAST\n")
    (tmp_path / "model/c.py").write_text("import vizpub.model.d\n")
    monkeypatch.setattr(selection, "ROOT", tmp_path)
    monkeypatch.setattr(selection, "PACKAGES", ("model",))
    return tmp_path


BEFORE = "LEAST = 3\n\ndef add(x):\n    return x + LEAST\n"
RECORD = Record(
    "c0ffee",
    {"t.py::calls": 1.0, "t.py::imports": 1.0, "u.py::other": 1.0, "u.py::lists": 1.0},
    {
        "t.py::calls": {"model/a.py", "model/b.py"},
        "t.py::imports": {"model/b.py"},
        "u.py::other": {"model/c.py"},
        "u.py::lists": {"model/"},
    },
)


class TestChanged:
    """Which of RECORD's tests a change touches."""

    @staticmethod
    def touched(changes: dict[str, str | None]) -> set[str]:
        chosen = selection.touched_by(changes, RECORD)
        return {test for test in [*RECORD.seconds, "u.py::new"] if chosen(test)}

    def test_function_touches_the_tests_that_call_into_its_file(self, project: Path) -> None:
        (project / "model/a.py").write_text(BEFORE.replace("x + LEAST", "LEAST + x"))
        assert self.touched({"model/a.py": BEFORE}) == {"t.py::calls", "u.py::new"}

    @pytest.mark.parametrize(
        "after", [BEFORE.replace("= 3", "= 4"), BEFORE.replace("def", "@compiled\ndef")]
    )
    def test_constant_or_compiled_function_touches_importers_too(
        self, project: Path, after: str
    ) -> None:
        (project / "model/a.py").write_text(after)
        expected = {"t.py::calls", "t.py::imports", "u.py::new"}
        assert self.touched({"model/a.py": BEFORE}) == expected

    def test_new_file_touches_the_tests_that_list_its_folder(self, project: Path) -> None:
        (project / "model/e.py").write_text("")
        assert self.touched({"model/e.py": None}) == {"u.py::lists", "u.py::new"}

    def test_removed_file_touches_the_tests_that_list_its_folder(self, project: Path) -> None:
        assert "u.py::lists" in self.touched({"model/gone.py": "x = 1\n"})

    def test_file_of_tests_touches_all_of_them(self, project: Path) -> None:
        assert self.touched({"u.py": ""}) == {"u.py::other", "u.py::lists", "u.py::new"}

    def test_lock_touches_every_test(self, project: Path) -> None:
        assert self.touched({"requirements.lock": ""}) == {*RECORD.seconds, "u.py::new"}


class TestSlices:
    def test_test_of_known_length_is_in_one_slice_with_its_file(self) -> None:
        seconds = {f"f{file}.py::t{test}": 7.0 for file in range(90) for test in range(10)}
        seconds["f0.py::t3"] = selection.SLICE_S + 1
        place = selection.slices_of([*seconds, "f0.py::new"], seconds)
        assert place.keys() == {*seconds} - {"f0.py::t3"}
        load = [0.0] * selection.SLICES
        for test, slice_ in place.items():
            load[slice_] += seconds[test]
        assert max(load) - min(load) <= selection.CHUNK_S
        assert len({place[f"f7.py::t{test}"] for test in range(10)}) == 2  # 70 s in two chunks

    def test_slice_has_the_tests_that_the_change_touches_too(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As long as they fit, and without those of which it is unknown what they touch."""
        record = Record(
            seconds={f"f.py::{test}": selection.TOUCHED_S / 2 for test in "abcdef"},
            touched={
                "f.py::a": {"other.py"}, "f.py::b": {"x.py", "y.py", "z.py"},
                "f.py::c": {"x.py"}, "f.py::d": {"x.py", "y.py"},
            },
        )  # fmt: skip
        monkeypatch.setattr(selection, "changed_since", lambda commit: {"x.py": ""})
        monkeypatch.setattr(selection, "base_of", lambda record: "")
        monkeypatch.setattr(selection, "reach_of", lambda changes: {*changes})
        monkeypatch.setattr(selection, "slices_of", lambda tests, seconds: {"f.py::e": 7})
        chosen = selection.chosen_slice({*record.seconds}, f"{7:08x}", record)
        assert chosen == {"f.py::e", "f.py::c", "f.py::d"}


class TestScheduling:
    FILES = (
        "tests/integration/graph/test_load.py", "tests/integration/test_append.py",
        "tests/integration/explorer/test_page.py", "tests/unit/cli/test_main.py",
        "tests/integration/test_server.py",
    )  # fmt: skip

    @pytest.mark.parametrize(
        ("place", "turns"),
        [
            (0, [0, 2, 2, 1, 0]),
            (1, [2, 0, 2, 1, 2]),
            (2, [2, 2, 0, 1, 2]),
            (3, [0, 2, 2, 1, 0]),
        ],
    )
    def test_process_takes_files_that_need_another_server_last(
        self, place: int, turns: list[int]
    ) -> None:
        assert [turn_of(file, place) for file in self.FILES] == turns

    def test_large_files_come_first_then_those_of_the_need_and_of_these_the_longest(self) -> None:
        more = "tests/integration/graph/test_verify.py"
        costs = dict(zip((*self.FILES, more), (9, 300, 40, 8, 1, 70), strict=True))
        ranked = sorted(costs, key=lambda file: rank_of(file, 0, costs[file], 100))
        load, append, page, main, server = self.FILES
        assert ranked == [append, more, load, server, main, page]

    def test_cost_of_a_file_is_that_of_its_functions_and_long_cases(self) -> None:
        seconds = {"a.py::x": 9.0, "a.py::y[1]": 3.0, "b.py::x": 4.0}
        tests = ["a.py::x[1]", "a.py::x[2]", "a.py::y[1]", "b.py::x", "b.py::new[1]"]
        assert cost_of_files(tests, seconds) == {"a.py": 12, "b.py": 4 + NEW_S}

    def test_files_of_about_one_size_keep_their_order(self) -> None:
        assert [*map(size_of, (0, 7.9, 8, 15, 16, 40, 300))] == [0, 0, 1, 1, 2, 3, 6]


class TestLedger:
    def test_ledger_keeps_what_passed_and_a_failure_is_run_again(self, tmp_path: Path) -> None:
        path = tmp_path / "long" / "c0ffee.txt"
        ledger = selection.Ledger(path, {"a.py::before"})
        for test, outcome in (("a.py::good[1]", "passed"), ("a.py::bad", "failed")):
            for when in ("setup", "call", "teardown"):
                result = outcome if when == "call" else "passed"
                ledger.pytest_runtest_logreport(report(test, when, result))
        ledger.pytest_sessionfinish(0)
        assert path.read_text() == "a.py::good[1]\ta.py::good\t0.75\n"
        assert seconds_in([path, path]) == {"a.py::good": 1.5}
        assert path.with_suffix(".failures").read_text().startswith("a.py::bad\nwhy\n")
        result = json.loads(path.with_suffix(".json").read_text())
        assert (result["tests"], result["passed before"], result["failed"]) == (2, 1, ["a.py::bad"])

    def test_ledger_leaves_out_what_was_skipped(self, tmp_path: Path) -> None:
        ledger = selection.Ledger(tmp_path / "long" / "c0ffee.txt", set())
        for when, outcome in (("setup", "skipped"), ("teardown", "passed")):
            ledger.pytest_runtest_logreport(report("a.py::needs_docker", when, outcome))
        ledger.pytest_sessionfinish(0)
        assert not (tmp_path / "long" / "c0ffee.txt").exists()

    def test_makefile_joins_options_of_the_rings_to_their_values(self) -> None:
        # pytest takes `--resume FILE`, once the file exists, for a place of tests, and then loads
        # none of the plugins that know the option.
        makefile = (ROOT / "Makefile").read_text("utf-8")
        assert not re.findall(r"--(?:resume|slice|changed) .*", makefile)
        assert makefile.count("--resume=") == 3


def report(test: str, when: Any, outcome: Any) -> pytest.TestReport:
    text = "why" if outcome == "failed" else None
    return pytest.TestReport(test, ("a.py", 1, "x"), {}, outcome, text, when, duration=0.25)


RING = """
import json, pathlib, sys
options = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
seed = int(options["--random-order-seed"])
run = {"tests": 7, "passed before": 0, "failed": ["a.py::x"] * (seed % 3 == 0), "seconds": 2}
run["status"] = len(run["failed"])
ledger = pathlib.Path(options["--resume"])
ledger.parent.mkdir(exist_ok=True)
ledger.with_suffix(".json").write_text(json.dumps(run))
sys.exit(run["status"])
"""
"""A ring that fails with each third seed."""


class TestResults:
    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        which = {"ring": "quick", "commit": "0" * 40, "arguments": ""}
        monkeypatch.setattr(results, "ROOT", tmp_path)
        monkeypatch.setattr(results, "RESULTS", tmp_path / "results.jsonl")
        monkeypatch.setattr(results, "identity", lambda ring: which | {"ring": ring})

    @staticmethod
    def rings(count: int, goes_on: bool = False) -> tuple[int, list[tuple[int, int]]]:
        """The status, and of all results so far the seed and how many tests failed."""
        status = results.run_quick(count, [sys.executable, "-c", RING], goes_on)
        lines = results.lines_like({"ring": "quick", "tests": 7, "seconds": 2})
        return status, [(line["seed"], len(line["failed"])) for line in lines]

    def test_rings_stop_at_a_failure_and_go_on_to_their_count(self) -> None:
        assert self.rings(5) == (1, [(1, 0), (2, 0), (3, 1)])
        assert self.rings(5) == (0, [(1, 0), (2, 0), (3, 1), (4, 0), (5, 0)])
        assert self.rings(5)[1][5:] == []
        status, lines = self.rings(7, goes_on=True)
        assert (status, lines[5:]) == (1, [(6, 1), (7, 0)])

    def test_ring_that_does_not_end_has_no_result(self) -> None:
        stopped = [sys.executable, "-c", "raise SystemExit(2)"]
        assert results.run_quick(1, stopped, goes_on=True) == pytest.ExitCode.INTERRUPTED
        assert results.lines_like({}) == []

    def test_long_ring_adds_up_its_runs_and_is_added_once(self, tmp_path: Path) -> None:
        def run(path: str, tests: int, before: int, failed: list[str], status: int) -> None:
            ledger = selection.Ledger(tmp_path / path, {f"b.py::{i}" for i in range(before)})
            for i in range(tests):
                outcome = "failed" if f"a.py::{i}" in failed else "passed"
                for when in ("setup", "call", "teardown"):
                    ledger.pytest_runtest_logreport(report(f"a.py::{i}", when, outcome))
            ledger.pytest_sessionfinish(status)

        def add() -> list[tuple[int, list[str], list[str]]]:
            results.add_long(tmp_path / "c0ffee.txt")
            lines = results.lines_like({"ring": "long"})
            return [(line["tests"], line["failed"], line["wheels passed"]) for line in lines]

        run("c0ffee.txt", 5, 0, ["a.py::3"], 2)
        assert add() == []  # stopped, and none in containers
        run("c0ffee.container.txt", 2, 0, [], 0)
        assert add() == []
        run("c0ffee.txt", 4, 4, ["a.py::3"], 1)
        assert add() == [(10, ["a.py::3"], [])]
        run("c0ffee.txt", 1, 7, [], 0)
        with (tmp_path / "c0ffee.json").open("a") as file:
            file.write('{"wheel": "Python 3.12.1"}\n')
        for _ in range(2):
            assert add()[1:] == [(10, [], ["Python 3.12.1"])]
