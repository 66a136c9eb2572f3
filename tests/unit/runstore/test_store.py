"""The run store without Spark: what readers see."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.support.permissions import as_a_user
from tests.support.tables import EMPTY, add, links, write
from tests.support.words import naming, tells, unknown
from vizpub.cli.main import app
from vizpub.model.errors import RunChanged, RunNotComplete, StoreBroken, UnknownName, UseError
from vizpub.model.run import NO_NAME_OF_A_RUN
from vizpub.model.tables import LINKS, table
from vizpub.runstore import leftovers
from vizpub.runstore.manifest import FILE, Cut
from vizpub.runstore.store import BrokenRun, StoredRun, metric_table, open_run, run_names, runs
from vizpub.runstore.writer import remove_run, writing


def begin(workspace: Path) -> None:
    with writing(workspace, "monday") as writer:
        writer.begin(EMPTY)


class TestReading:
    def test_table_is_read_sorted_by_its_key(self, run: StoredRun, rows: pa.Table) -> None:
        found = run.read("links")
        assert found.schema == LINKS.arrow
        order = [(key, "ascending") for key in LINKS.key]
        assert found.select(list(LINKS.key)).equals(rows.sort_by(order).select(list(LINKS.key)))
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, rows.to_pylist()))

    def test_columns_and_rows_can_be_chosen(self, run: StoredRun, rows: pa.Table) -> None:
        found = run.read("links", ["dst", "valid_from"], pc.field("layer") == "mesh")
        assert found.column_names == ["dst", "valid_from"]
        mesh = rows.filter(pc.equal(rows["layer"], "mesh"))
        assert sorted(found["valid_from"].to_pylist()) == sorted(mesh["valid_from"].to_pylist())

    def test_row_count_equals_the_written_rows(self, run: StoredRun) -> None:
        files = list(run.directory.rglob("*.parquet"))
        for file in files:
            file.rename(file.with_suffix(".away"))  # the manifest knows
        assert files
        assert run.rows("links") == 100
        assert run.has("links")

    def test_unwritten_table_is_empty(self, run: StoredRun) -> None:
        assert not run.has("roles")
        assert run.rows("roles") == 0
        assert run.read("roles").num_rows == 0
        assert run.read("roles").schema == table("roles").arrow
        assert list(run.scan("roles")) == []
        assert list(run.row_groups("roles")) == []

    def test_scan_gives_every_row_once(self, run: StoredRun, rows: pa.Table) -> None:
        found = pa.Table.from_batches(run.scan("links"), LINKS.arrow)
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, rows.to_pylist()))

    def test_parts_have_the_rows_that_a_cut_leaves(self, tmp_path: Path) -> None:
        old, fresh, cut = links(60, seed=1), links(20, seed=2), Cut("valid_to", 40)
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "first", "links", old, state="complete")
            stored = writer.stored
            assert stored is not None
            parts = writer.cut("links", stored.tables["links"].parts, cut)
            entry = writer.entry(write(writer, "links", fresh), parts)
            writer.commit(replace(stored, tables={"links": entry}))
        run = open_run(tmp_path, "monday")

        def found(parts: list[str]) -> list[str]:
            batches = (batch for part in parts for batch in run.part_rows("links", part))
            return sorted(map(repr, pa.Table.from_batches(batches, LINKS.arrow).to_pylist()))

        def meant(rows: pa.Table) -> list[str]:
            return sorted(map(repr, rows.to_pylist()))

        names = run.parts("links")
        assert found(names[-3:]) == meant(fresh)
        assert found(names[:-3]) == meant(old.filter(pc.field("valid_to") < 40)) != []
        grouped = {label.partition("/")[0] for label, _ in run.row_groups("links")}
        assert grouped == {*names}
        assert run.parts("roles") == []

    def test_row_groups_have_the_same_labels_each_time(self, run: StoredRun) -> None:
        first, again = list(run.row_groups("links")), list(run.row_groups("links"))
        labels = [label for label, _ in first]
        assert len(labels) == len(set(labels)) == 15
        first_file = run.parts("links")[0]
        assert labels[:2] == [f"{first_file}/{group}" for group in (0, 1)]
        assert [(label, batch.to_pylist()) for label, batch in first] == [
            (label, batch.to_pylist()) for label, batch in again
        ]
        assert sum(len(batch) for _, batch in first) == 100

    def test_row_groups_keep_their_labels_in_a_moved_run(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        before = [label for label, _ in run.row_groups("links")]
        run.directory.rename(tmp_path / "elsewhere")
        moved = replace(run, directory=tmp_path / "elsewhere")
        assert [label for label, _ in moved.row_groups("links")] == before

    def test_later_column_is_null_in_older_files(self, run: StoredRun) -> None:
        for path in run.files("links"):
            pq.write_table(pq.read_table(path).drop_columns("topic"), path)
        # Older than the list of files, too.
        older = replace(run.manifest.tables["links"], files=None)
        run = replace(run, manifest=replace(run.manifest, tables={"links": older}))
        (_, batch), *_ = run.row_groups("links")
        assert batch.schema == LINKS.arrow
        assert batch["topic"].null_count == len(batch) > 0
        assert run.read("links")["topic"].null_count == 100

    def test_unknown_table_is_refused_with_the_nearest_name(self, run: StoredRun) -> None:
        with pytest.raises(UnknownName, match=unknown("table", "link", "links")):
            run.read("link")

    def test_table_with_lost_files_is_an_error(self, run: StoredRun) -> None:
        directory = run.directory / run.manifest.tables["links"].directory
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
        with pytest.raises(StoreBroken, match="links"):
            run.read("links")

    def test_lost_or_truncated_file_is_named_in_the_error(self, run: StoredRun) -> None:
        first, second, *_ = run.files("links")
        second.write_bytes(second.read_bytes()[:-1])
        with pytest.raises(StoreBroken, match=naming(second.name, "run.json")):
            run.read("links")
        second.unlink()
        with pytest.raises(StoreBroken, match=naming(second.name, "table links")):
            run.read("links", ["src"])
        assert first.exists()

    @pytest.mark.parametrize("way", ["read", "row_groups"])
    def test_invalid_parquet_file_is_named_in_the_error(self, run: StoredRun, way: str) -> None:
        run.files("links")[1].write_bytes(b"PAR1 torn")
        with pytest.raises(StoreBroken, match="part-00001"):
            list(getattr(run, way)("links"))


class TestBeingCurrent:
    def test_run_is_current_until_its_tables_are_others(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with writing(tmp_path, "monday") as writer:
            assert run.is_current()
            writer.begin(EMPTY)
            assert run.is_current()  # the other one grows beside it
            add(writer, "versions", "links", links(9, seed=2), state="complete")
        assert not run.is_current()
        assert open_run(tmp_path, "monday").is_current()
        remove_run(tmp_path, "monday")
        assert not run.is_current()

    @pytest.mark.parametrize("how", ["replaced", "removed"])
    def test_file_that_another_command_let_go_is_no_damage(
        self, run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        if how == "removed":
            remove_run(tmp_path, "monday")
        else:
            monkeypatch.setattr(leftovers, "KEPT_SECONDS", 0)
            with writing(tmp_path, "monday") as writer:
                writer.begin(EMPTY)
                add(writer, "versions", "links", links(9, seed=2), state="complete")
        part, *_ = run.parts("links")
        for read in (
            lambda: run.read("links"),
            lambda: list(run.row_groups("links")),
            lambda: list(run.part_rows("links", part)),
            lambda: list(run.rows_from("links", "valid_to", 0)),
            lambda: run.dataset("links"),
            lambda: run.files("links"),
        ):
            with pytest.raises(RunChanged, match="'monday'"):
                read()


class TestOpening:
    def test_unknown_run_is_refused_with_the_nearest_name(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with pytest.raises(UnknownName, match=unknown("run", "mondy", "monday")):
            open_run(tmp_path, "mondy")

    def test_empty_workspace_has_no_runs(self, tmp_path: Path) -> None:
        assert runs(tmp_path) == []
        assert run_names(tmp_path / "nowhere") == []
        with pytest.raises(UnknownName, match=unknown("run", "monday")):
            open_run(tmp_path, "monday")

    def test_run_name_that_leaves_the_workspace_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UseError, match=NO_NAME_OF_A_RUN):
            open_run(tmp_path, "../monday")

    def test_incomplete_run_is_refused_unless_asked_for(self, tmp_path: Path) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
        with pytest.raises(RunNotComplete, match="ingesting"):
            open_run(tmp_path, "monday")
        assert open_run(tmp_path, "monday", complete=False).name == "monday"

    def test_broken_manifest_is_named_in_the_error(self, run: StoredRun, tmp_path: Path) -> None:
        (run.directory / FILE).write_text("{")
        with pytest.raises(StoreBroken, match=FILE):
            open_run(tmp_path, "monday")
        assert run_names(tmp_path) == ["monday"]

    @pytest.mark.parametrize("closed", ["directory", "file"])
    def test_run_that_may_not_be_read_is_there(
        self, run: StoredRun, tmp_path: Path, closed: str
    ) -> None:
        path = run.directory / FILE if closed == "file" else run.directory
        path.chmod(0)
        with as_a_user(), pytest.raises(StoreBroken, match="Permission denied"):
            open_run(tmp_path, "monday")
        path.chmod(0o700)

    @pytest.mark.parametrize("closed", [".", "runs"])
    def test_workspace_that_may_not_be_read_is_told(
        self, run: StoredRun, tmp_path: Path, closed: str
    ) -> None:
        """Nobody knows whether it has no runs."""
        (tmp_path / closed).chmod(0)
        with (
            as_a_user(),
            pytest.raises(UseError, match=naming(tmp_path / "runs", "Permission denied")),
        ):
            runs(tmp_path)
        (tmp_path / closed).chmod(0o700)
        assert run_names(tmp_path) == ["monday"]

    def test_relative_workspace_with_a_colon_is_no_uri(
        self, run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shutil.copytree(tmp_path / "runs", tmp_path / "day:1/runs")
        monkeypatch.chdir(tmp_path)
        found = open_run(Path("day:1"), "monday")
        assert found.read("links").equals(run.read("links"))
        assert sum(len(rows) for _, rows in found.row_groups("links")) == 100

    @pytest.mark.parametrize(
        "uri",
        ["s3a://bucket/lab", "S3://bucket", "s3://b", "hdfs://h:9000/x y", "file:///x", "gs://b"],
    )
    def test_workspace_that_is_a_uri_is_refused(
        self, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As a path it would be a folder here, and the run not where the user means."""
        monkeypatch.chdir(tmp_path)
        scheme = uri.partition(":")[0]
        for touch in (run_names, lambda path: open_run(path, "monday"), begin):
            with pytest.raises(UseError, match=naming("workspace", scheme)):
                touch(Path(uri))
        refused = CliRunner().invoke(app, ["--workspace", uri, "tables"])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert list(tmp_path.iterdir()) == []

    def test_renamed_or_copied_directory_is_a_run_of_its_name(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        shutil.copytree(run.directory, tmp_path / "runs/copy")
        run.directory.rename(tmp_path / "runs/tuesday")
        shutil.copytree(tmp_path / "runs/copy", tmp_path / "runs/copy (2)")
        assert [found.name for found in runs(tmp_path)] == ["copy", "copy (2)", "tuesday"]
        assert open_run(tmp_path, "tuesday").name == "tuesday"
        with writing(tmp_path, "tuesday") as writer:
            assert writer.stored is not None
            assert writer.stored.name == "tuesday"
        _, other, _ = runs(tmp_path)
        assert isinstance(other, BrokenRun)
        tells(str(other.error), NO_NAME_OF_A_RUN, "directory")

    @pytest.mark.parametrize("what", ["text", "directory", "bytes"])
    def test_broken_run_is_listed_and_spoils_no_other(
        self, run: StoredRun, tmp_path: Path, what: str
    ) -> None:
        with writing(tmp_path, "tuesday") as writer:
            writer.begin(replace(EMPTY, name="tuesday"))
        broken = run.directory / FILE
        if what == "directory":
            broken.unlink()
            broken.mkdir()
        else:
            broken.write_bytes(b"[" * 100_000 if what == "text" else b"\xff")
        first, second = runs(tmp_path)
        assert isinstance(first, BrokenRun)
        assert first.name == "monday"
        assert str(broken) in str(first.error)
        tells(str(first.error), "--replace")
        assert isinstance(second, StoredRun)
        assert open_run(tmp_path, "tuesday", complete=False) == second

    def test_runs_are_listed_by_name(self, tmp_path: Path) -> None:
        for name in ("b", "a", "c"):
            with writing(tmp_path, name) as writer:
                writer.begin(replace(EMPTY, name=name))
        (tmp_path / "runs" / "no-run").mkdir()
        assert [run.name for run in runs(tmp_path)] == run_names(tmp_path) == ["a", "b", "c"]

    def test_metric_table_is_found_by_its_short_name(self) -> None:
        assert metric_table("peers").name == "metrics/peers"
        assert metric_table("metrics/overlay").name == "metrics/overlay"
        with pytest.raises(UnknownName):
            metric_table("links")
