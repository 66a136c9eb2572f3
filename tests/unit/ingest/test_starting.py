"""Where an ingest begins, by what is there of its run; without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.scripted import FIRST, FORMATS, SECOND, TABLES, THIRD, begun, ingest, wanted
from tests.support.tables import everything
from tests.support.words import naming
from vizpub.ingest.starting import PUT_BACK, RequestedRun
from vizpub.model.errors import InputsDiffer, NeedsSettling, RunChanged, StoreBroken, UseError
from vizpub.model.own import OwnMetric
from vizpub.runstore.manifest import FILE
from vizpub.runstore.store import open_run


def measured(asked: RequestedRun, *own: OwnMetric) -> RequestedRun:
    """The same, with own metrics."""
    told = [f"{metric.name} {metric.digest}" for metric in own] or None
    options = {**asked.manifest.options, "own": told}
    return replace(asked, manifest=replace(asked.manifest, own=own, options=options))


class TestGoingOn:
    def test_half_run_goes_on_behind_its_last_stage(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST), ["parse", "versions"])
        before = everything(tmp_path)
        assert begun(tmp_path, wanted(FIRST)).stages == ("parse", "versions")
        assert everything(tmp_path) == before

    @pytest.mark.parametrize("way", ["gone", "empty", "torn", "other"])
    @pytest.mark.parametrize(("table", "kept"), [("links", ("parse",)), ("staged", ())])
    def test_stage_with_a_torn_file_is_done_again_with_all_behind_it(
        self, tmp_path: Path, table: str, kept: tuple[str, ...], way: str
    ) -> None:
        ingest(tmp_path, wanted(FIRST), ["parse", "versions"])
        torn, *_ = sorted((tmp_path / "runs/monday/data" / table).rglob("*.parquet"))
        whole = torn.read_bytes()
        torn.unlink()
        left = {"empty": b"", "torn": whole[:-9], "other": bytes(len(whole))}
        if way in left:
            torn.write_bytes(left[way])
        found = begun(tmp_path, wanted(FIRST))
        assert found.stages == kept
        assert {entry.stage for entry in found.tables.values()} == {*kept}
        assert not torn.parent.exists()  # what nothing names is removed
        ingest(tmp_path, wanted(FIRST))
        run = open_run(tmp_path, "monday")
        assert run.manifest.stages == tuple(TABLES)
        assert run.read("links").num_rows == 30

    @pytest.mark.parametrize(
        ("changed", "kept"),
        [("parse", ()), ("versions", ("parse",)), ("finish", ("parse", "versions"))],
    )
    def test_stage_of_another_format_is_done_again_with_all_behind_it(
        self, tmp_path: Path, changed: str, kept: tuple[str, ...]
    ) -> None:
        """The version of the package is not asked."""
        ingest(tmp_path, wanted(FIRST), ["parse", "versions"])
        now = {**FORMATS, changed: 9}
        other = wanted(FIRST, formats=now)
        other = replace(other, manifest=replace(other.manifest, versions={"vizpub": "77"}))
        found = begun(tmp_path, other)
        assert (found.stages, found.formats) == (kept, now)

    def test_half_run_of_other_files_begins_again(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST), ["parse"])
        assert begun(tmp_path, wanted(SECOND)).stages == ()

    def test_damaged_complete_run_is_told_of(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        assert ingest(tmp_path, wanted(FIRST)).complete_run
        lost, *_ = open_run(tmp_path, "monday").files("links")
        lost.unlink()
        with pytest.raises(StoreBroken, match=naming(lost.name)):
            ingest(tmp_path, wanted(FIRST))

    def test_broken_run_is_told_of(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        (tmp_path / "runs/monday" / FILE).write_text("{")
        for how in ({}, {"append": True}):
            with pytest.raises(StoreBroken, match="--replace"):
                ingest(tmp_path, wanted(FIRST, **how))


class TestReplacing:
    def test_equal_run_is_made_anew(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        old = open_run(tmp_path, "monday")
        assert ingest(tmp_path, wanted(FIRST, replace=True)).complete_run is None
        assert open_run(tmp_path, "monday").manifest.identity != old.manifest.identity

    @pytest.mark.parametrize("way", ["text", "files", "nothing"])
    def test_run_stays_until_its_successor_is_complete_whatever_it_is(
        self, tmp_path: Path, way: str
    ) -> None:
        ingest(tmp_path, wanted(FIRST))
        directory = tmp_path / "runs/monday"
        if way == "text":
            (directory / FILE).write_text("{")
        elif way == "files":
            for file in directory.rglob("*.parquet"):
                file.write_bytes(b"")
        before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
        for stages in (["parse"], ["parse", "versions"]):
            ingest(tmp_path, wanted(SECOND, replace=True), stages)
            assert {path: path.read_bytes() for path in before} == before
        ingest(tmp_path, wanted(SECOND, replace=True))
        run = open_run(tmp_path, "monday")
        assert run.manifest.inputs == (SECOND.manifest_entry,)
        assert run.read("links").num_rows == 30
        named = {directory / FILE, *directory.rglob("*.parquet")}
        assert {path for path in directory.rglob("*") if path.is_file()} == named
        assert not named & {*before} - {directory / FILE}

    def test_stopped_replacement_goes_on_by_the_same_command(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        ingest(tmp_path, wanted(SECOND, replace=True), ["parse", "versions"])
        assert begun(tmp_path, wanted(SECOND, replace=True)).stages == ("parse", "versions")
        assert begun(tmp_path, wanted(FIRST, replace=True)).stages == ()

    def test_stopped_replacement_gives_way_to_an_append(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        ingest(tmp_path, wanted(SECOND, replace=True), ["parse"])
        found = begun(tmp_path, wanted(SECOND, append=True))
        assert found.stages == ()
        assert found.inputs == (FIRST.manifest_entry, SECOND.manifest_entry)


class TestAppending:
    def test_stopped_append_goes_on_behind_its_last_stage(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        ingest(tmp_path, wanted(FIRST, SECOND, append=True), ["parse", "versions"])
        assert open_run(tmp_path, "monday").manifest.inputs == (FIRST.manifest_entry,)
        found = begun(tmp_path, wanted(FIRST, SECOND, append=True))
        assert found.stages == ("parse", "versions")

    def test_stopped_append_gives_way_where_its_file_has_changed_or_is_gone(
        self, tmp_path: Path
    ) -> None:
        """As it was it cannot be named again. One that is there must be."""
        ingest(tmp_path, wanted(FIRST))
        file = tmp_path / "second.ndjson"
        second = replace(SECOND, path=str(file))
        ingest(tmp_path, wanted(second, append=True), ["parse"])
        file.touch()
        with pytest.raises(UseError, match=naming("'monday'", "second.ndjson")):
            begun(tmp_path, wanted(THIRD, append=True))
        changed = replace(second, sha256="changed")
        found = begun(tmp_path, wanted(changed, THIRD, append=True))
        assert found.stages == ()
        assert [file["sha256"] for file in found.inputs] == ["first", "changed", "third"]
        ingest(tmp_path, wanted(changed, append=True), ["parse"])
        file.unlink()
        found = begun(tmp_path, wanted(THIRD, append=True))
        assert [file["sha256"] for file in found.inputs] == ["first", "third"]

    def test_append_by_another_format_is_refused_naming_the_stage(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        now = {**FORMATS, "versions": 5}
        with pytest.raises(NeedsSettling, match=naming("versions", "--no-settle")):
            ingest(tmp_path, wanted(FIRST, SECOND, append=True, formats=now))

    def test_append_with_other_own_metrics_is_refused(self, tmp_path: Path) -> None:
        """Made anew without them the run would lose their columns."""
        cores = OwnMetric("cores", "peer", digest="1")
        ingest(tmp_path, measured(wanted(FIRST), cores))
        for others in ((), (replace(cores, digest="2"),), (cores, replace(cores, name="more"))):
            again = measured(wanted(FIRST, SECOND, append=True), *others)
            with pytest.raises(UseError, match=naming("'monday'", "cores", "--replace")) as refused:
                ingest(tmp_path, again)
            assert not isinstance(refused.value, NeedsSettling)
        ingest(tmp_path, measured(wanted(FIRST, SECOND, append=True), cores))
        assert len(open_run(tmp_path, "monday").manifest.inputs) == 2

    def test_run_of_another_format_is_refused_and_replaced(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        path = tmp_path / "runs/monday" / FILE
        path.write_text(path.read_text().replace("vizpub.store/5", "vizpub.store/4"))
        with pytest.raises(
            StoreBroken, match=naming("vizpub.store/4", "vizpub.store/5", "--replace")
        ):
            ingest(tmp_path, wanted(FIRST))
        ingest(tmp_path, wanted(FIRST, replace=True))
        assert open_run(tmp_path, "monday").read("links").num_rows == 30

    def test_other_files_are_refused_with_what_can_be_done(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        with pytest.raises(InputsDiffer, match=naming("'monday'", "--replace")):
            ingest(tmp_path, wanted(SECOND))

    def test_refused_append_does_not_suggest_to_append(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        asked = wanted(SECOND, append=True)
        other = replace(asked, manifest=replace(asked.manifest, source="edges"))
        with pytest.raises(
            InputsDiffer, match=naming("'monday'", "--run NAME", "--replace")
        ) as caught:
            begun(tmp_path, other)
        assert "--append" not in str(caught.value)


class TestSettling:
    def test_other_options_are_named_as_they_are_given(self, tmp_path: Path) -> None:
        def asked(**options: object) -> RequestedRun:
            plain = wanted(FIRST)
            told = {**plain.manifest.options, **options}
            return replace(plain, manifest=replace(plain.manifest, options=told))

        ingest(tmp_path, asked(interval_us=None, layers=["mesh", "rings"], betweenness=None))
        other = asked(interval_us=2_500_000, layers=None, betweenness=False)
        with pytest.raises(InputsDiffer) as caught:
            begun(tmp_path, other)
        for told in (
            "--interval: the default then, 2500ms now",
            "--layers: mesh,rings then, the default now",
            "--no-betweenness: not given then, given now",
        ):
            assert told in str(caught.value)

    def test_settled_run_needs_every_file_that_it_was_made_from(self, tmp_path: Path) -> None:
        ingest(tmp_path, wanted(FIRST))
        ingest(tmp_path, wanted(FIRST, SECOND, append=True))
        asked = wanted(FIRST, THIRD, replace=True, settles=(2, 20))
        with pytest.raises(UseError, match=naming("'monday'", "second.ndjson", PUT_BACK)):
            ingest(tmp_path, asked)
        ingest(tmp_path, wanted(FIRST, SECOND, THIRD, replace=True, settles=(2, 20)))
        made = open_run(tmp_path, "monday").manifest
        assert [Path(file["path"]).name for file in made.inputs] == [
            "first.ndjson",
            "second.ndjson",
            "third.ndjson",
        ]

    def test_run_that_was_appended_to_meanwhile_is_not_settled(self, tmp_path: Path) -> None:
        """Its files are not gone: when they were listed they had not come yet."""
        ingest(tmp_path, wanted(FIRST))
        ingest(tmp_path, wanted(FIRST, SECOND, append=True))
        with pytest.raises(RunChanged, match="'monday'"):
            ingest(tmp_path, wanted(FIRST, replace=True, settles=(1, 10)))
        assert len(open_run(tmp_path, "monday").manifest.inputs) == 2
