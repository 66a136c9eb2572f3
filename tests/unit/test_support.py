"""What the tests themselves stand on: names, order, skips."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import order
from tests.support.ids import id_of, refuse_addresses
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


class TestOrder:
    def test_unknown_files_come_first_and_then_the_longest(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seconds = tmp_path / "seconds.json"
        seconds.write_text(json.dumps({"b.py": 3, "a.py": 7.5, "c.py": 0}))
        monkeypatch.setattr(order, "SECONDS", seconds)
        files = ["c.py", "b.py", "new.py", "a.py", "another.py"]
        expected = ["another.py", "new.py", "a.py", "b.py", "c.py"]
        assert sorted(files, key=order.longest_first()) == expected

    def test_recorded_seconds_are_summed_by_file_and_others_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (seconds := tmp_path / "seconds.json").write_text('{"tests/conftest.py": 2, "gone.py": 1}')
        monkeypatch.setattr(order, "SECONDS", seconds)
        recorder = order.Recorder()
        for when, duration in (("setup", 1.25), ("call", 2.0)):
            nodeid = "tests/unit/test_support.py::test_x[a::b]"
            report = pytest.TestReport(nodeid, ("a", 1, "b"), {}, "passed", None, when)  # type: ignore[arg-type]
            report.duration = duration
            recorder.pytest_runtest_logreport(report)
        recorder.pytest_sessionfinish()
        assert json.loads(seconds.read_text()) == {
            "tests/conftest.py": 2,
            "tests/unit/test_support.py": 3.2,
        }
