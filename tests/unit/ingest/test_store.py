"""The run store without Spark: what readers see, and what writers leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ingest.manifest import FILE, Cut, Manifest, read_manifest
from ingest.store import (
    RunWriter,
    StoredRun,
    metric_table,
    open_run,
    remove_run,
    run_names,
    runs,
    writing,
)
from model.errors import RunLocked, RunNotComplete, StoreBroken, UnknownName, UseError
from model.tables import LINKS, table

EMPTY = Manifest("monday", "edges", (), {})
ROOT = Path(__file__).parents[3]


def links(count: int, seed: int) -> pa.Table:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    topics = [None if draw < 0 else int(draw) for draw in rng.integers(-1, 3, count)]
    columns = {
        "src": rng.integers(0, 30, count),
        "dst": rng.integers(0, 30, count),
        "layer": rng.choice(["mesh", "overlay"], count),
        "topic": pa.array(topics, pa.int32()),
        "vf": (start := rng.integers(0, 50, count)),
        "vt": start + rng.integers(1, 9, count),
    }
    return pa.table(columns).cast(LINKS.arrow)


def write(writer: RunWriter, name: str, rows: pa.Table, files: int = 3, group: int = 7) -> Path:
    """A generation of a table, as Spark would write it: some files, some row groups."""
    directory = writer.fresh_directory(name)
    directory.mkdir(parents=True)
    (directory / "_SUCCESS").touch()
    size = -(-len(rows) // files)
    for i in range(files):
        part = rows.slice(i * size, size)
        pq.write_table(part, directory / f"part-{i:05}.parquet", row_group_size=group)
    return directory


def add(writer: RunWriter, stage: str, name: str, rows: pa.Table, **changes: object) -> None:
    assert writer.manifest is not None
    entry = writer.entry(write(writer, name, rows))
    writer.commit(writer.manifest.with_stage(stage, {name: entry}, **changes))


def everything(directory: Path) -> set[str]:
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


@pytest.fixture
def rows() -> pa.Table:
    return links(100, seed=1)


@pytest.fixture
def run(tmp_path: Path, rows: pa.Table) -> StoredRun:
    with writing(tmp_path, "monday") as writer:
        writer.begin(EMPTY)
        add(writer, "versions", "links", rows, state="complete")
    return open_run(tmp_path, "monday")


class TestReading:
    def test_table_is_read_sorted_by_its_key(self, run: StoredRun, rows: pa.Table) -> None:
        found = run.read("links")
        assert found.schema == LINKS.arrow
        order = [(key, "ascending") for key in LINKS.key]
        assert found.select(list(LINKS.key)).equals(rows.sort_by(order).select(list(LINKS.key)))
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, rows.to_pylist()))

    def test_columns_and_rows_can_be_chosen(self, run: StoredRun, rows: pa.Table) -> None:
        found = run.read("links", ["dst", "vf"], pc.field("layer") == "mesh")
        assert found.column_names == ["dst", "vf"]
        mesh = rows.filter(pc.equal(rows["layer"], "mesh"))
        assert sorted(found["vf"].to_pylist()) == sorted(mesh["vf"].to_pylist())

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

    def test_row_groups_have_the_same_labels_each_time(self, run: StoredRun) -> None:
        first, again = list(run.row_groups("links")), list(run.row_groups("links"))
        labels = [label for label, _ in first]
        assert len(labels) == len(set(labels)) == 15
        here = run.manifest.tables["links"].directory.removeprefix("links/")
        assert labels[:2] == [f"{here}/part-00000.parquet#{group}" for group in (0, 1)]
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
        with pytest.raises(UnknownName, match="did you mean links"):
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
        with pytest.raises(StoreBroken, match=f"{second.name}.*run.json says"):
            run.read("links")
        second.unlink()
        with pytest.raises(StoreBroken, match=f"{second.name}.*is gone"):
            run.read("links", ["src"])
        assert first.exists()

    @pytest.mark.parametrize("way", ["read", "row_groups"])
    def test_invalid_parquet_file_is_named_in_the_error(self, run: StoredRun, way: str) -> None:
        run.files("links")[1].write_bytes(b"PAR1 torn")
        with pytest.raises(StoreBroken, match="part-00001"):
            list(getattr(run, way)("links"))


class TestOpening:
    def test_unknown_run_is_refused_with_the_nearest_name(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with pytest.raises(UnknownName, match="did you mean monday"):
            open_run(tmp_path, "mondy")

    def test_empty_workspace_has_no_runs(self, tmp_path: Path) -> None:
        assert runs(tmp_path) == []
        assert run_names(tmp_path / "nowhere") == []
        with pytest.raises(UnknownName, match="no run 'monday'"):
            open_run(tmp_path, "monday")

    def test_run_name_that_leaves_the_workspace_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UseError, match="cannot name a run"):
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
        with pytest.raises(StoreBroken, match=FILE):
            runs(tmp_path)
        assert run_names(tmp_path) == ["monday"]

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


class TestWriting:
    def test_uncommitted_table_is_invisible_to_readers(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with writing(tmp_path, "monday") as writer:
            write(writer, "links", links(9, seed=2))
            assert open_run(tmp_path, "monday").rows("links") == 100

    def test_new_generation_replaces_the_old_at_commit(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with writing(tmp_path, "monday") as writer:
            add(writer, "again", "links", links(9, seed=2))
            assert run.read("links").num_rows == 100  # who reads the old one may finish
        assert open_run(tmp_path, "monday").read("links").num_rows == 9

    def test_next_writer_removes_files_not_named_by_the_manifest(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        before = everything(run.directory)
        with writing(tmp_path, "monday") as writer:
            for name in ("links", "metrics/peers", "staged/parsed.events", "quarantine"):
                write(writer, name, links(9, seed=2))
            assert everything(run.directory) > before
        with writing(tmp_path, "monday"):
            pass
        assert everything(run.directory) == before
        assert open_run(tmp_path, "monday").read("links").num_rows == 100

    def test_staged_table_stays_until_the_manifest_drops_it(self, tmp_path: Path) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "parse", "staged/parsed.events", links(9, seed=2))
        with writing(tmp_path, "monday") as writer:
            assert writer.manifest is not None
            entry = writer.manifest.tables["staged/parsed.events"]
            assert (writer.directory / entry.directory).is_dir()
            writer.commit(replace(writer.manifest, tables={}))
            writer.sweep()
        assert everything(writer.directory) == {FILE}
        assert not (writer.directory / "staged").exists()

    def test_accepted_successor_removes_all_files_of_the_old_run(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            writer.accept()
        assert everything(run.directory) == {FILE}
        assert read_manifest(run.directory) == EMPTY

    def test_restore_brings_back_the_run_before_an_unaccepted_successor(
        self, run: StoredRun, rows: pa.Table, tmp_path: Path
    ) -> None:
        before = everything(run.directory)
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "parse", "staged/parsed.events", rows)
            assert not read_manifest(run.directory).complete
        with writing(tmp_path, "monday") as writer:  # as after a kill
            writer.restore()
            writer.restore()
            assert writer.manifest == run.manifest
        assert everything(run.directory) == before
        assert open_run(tmp_path, "monday").read("links").equals(run.read("links"))

    def test_incomplete_run_is_not_kept_for_restore(self, tmp_path: Path, rows: pa.Table) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "versions", "links", rows)
            writer.begin(EMPTY)
            writer.restore()
            assert writer.manifest == EMPTY
        assert everything(writer.directory) == {FILE}

    def test_generations_have_different_directories(self, tmp_path: Path) -> None:
        with writing(tmp_path, "monday") as writer:
            assert len({writer.fresh_directory("links") for _ in range(1000)}) == 1000

    def test_table_entry_counts_rows_and_has_a_relative_directory(self, tmp_path: Path) -> None:
        with writing(tmp_path, "monday") as writer:
            directory = write(writer, "links", links(41, seed=3))
            entry = writer.entry(directory)
        assert entry.rows == 41
        assert writer.directory / entry.directory == directory
        assert not Path(entry.directory).is_absolute()


LATE = Cut("vt", 40)


def grow(writer: RunWriter, rows: pa.Table, *, finish: bool = True) -> None:
    """Append to the run: its links that end from tick 40 on give way to other rows."""
    base = writer.manifest
    assert base is not None
    writer.extend(replace(EMPTY, extends=base.identity))
    older = base.tables["links"]
    entry = writer.entry(write(writer, "links", rows), writer.cut(older.parts, LATE))
    assert writer.manifest is not None
    state = "complete" if finish else "ingesting"
    writer.commit(writer.manifest.with_stage("finish", {"links": entry}, state=state))


class TestAppending:
    """Tables of several parts, and a run that stays what it was until it has grown."""

    def test_readers_see_all_parts_up_to_their_cuts(
        self, run: StoredRun, rows: pa.Table, tmp_path: Path
    ) -> None:
        more = links(9, seed=4)
        with writing(tmp_path, "monday") as writer:
            grow(writer, more)
        grown = open_run(tmp_path, "monday")
        wanted = pa.concat_tables([rows.filter(pc.less(rows["vt"], 40)), more])
        assert 9 < wanted.num_rows < 109
        assert grown.rows("links") == wanted.num_rows
        order = [(key, "ascending") for key in (*LINKS.key, "vt")]
        assert grown.read("links").sort_by(order) == wanted.sort_by(order)
        groups = list(grown.row_groups("links"))
        assert pa.Table.from_batches(b for _, b in groups).sort_by(order) == wanted.sort_by(order)
        assert len({label for label, _ in groups}) == len(groups)
        some = grown.read("links", ["src"], pc.field("vf") > 30)
        assert some.num_rows == pc.sum(pc.greater(wanted["vf"], 30)).as_py()

    def test_append_leaves_older_files_untouched(self, run: StoredRun, tmp_path: Path) -> None:
        before = {path: path.stat().st_mtime_ns for path in run.files("links")}
        with writing(tmp_path, "monday") as writer:
            grow(writer, links(9, seed=4))
            grow(writer, links(7, seed=5))
        grown = open_run(tmp_path, "monday")
        assert len(grown.manifest.tables["links"].parts) == 3
        assert before.items() <= {p: p.stat().st_mtime_ns for p in grown.files("links")}.items()
        assert grown.rows("links") == grown.read("links").num_rows

    def test_unfinished_append_leaves_the_run_unchanged(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        before = everything(run.directory)
        with writing(tmp_path, "monday") as writer:
            grow(writer, links(9, seed=4), finish=False)
            assert open_run(tmp_path, "monday").read("links") == run.read("links")
        with writing(tmp_path, "monday") as writer:  # as after a kill
            pending = writer.pending()
            assert pending is not None
            assert pending.stages == ("finish",)
            assert (writer.directory / pending.tables["links"].directory).is_dir()
            writer.extend(pending)
            writer.restore()
            assert writer.manifest == run.manifest
        assert everything(run.directory) == before

    def test_new_run_discards_the_pending_append(self, run: StoredRun, tmp_path: Path) -> None:
        with writing(tmp_path, "monday") as writer:
            grow(writer, links(9, seed=4), finish=False)
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            writer.accept()
            assert writer.pending() is None
        assert everything(run.directory) == {FILE}


_HOLD = """
import sys, time
from pathlib import Path
from ingest.store import writing
with writing(Path(sys.argv[1]), "monday"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """Another process that writes the run."""
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: subprocess.Popen[str], how: signal.Signals) -> None:
    child.send_signal(how)
    child.communicate(timeout=30)


class TestLock:
    def test_second_writer_is_refused_naming_the_first_process(
        self, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        try:
            with (
                pytest.raises(RunLocked, match=f"process {holder.pid}"),
                writing(tmp_path, "monday"),
            ):
                pass
            with writing(tmp_path, "tuesday"):
                pass
        finally:
            end(holder, signal.SIGKILL)

    def test_removal_of_a_locked_run_is_refused(
        self, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        try:
            with pytest.raises(RunLocked):
                remove_run(tmp_path, "monday")
        finally:
            end(holder, signal.SIGKILL)
        assert (tmp_path / "runs" / "monday").is_dir()

    def test_lock_of_a_killed_process_is_taken_over(
        self, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        end(holder, signal.SIGKILL)
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
        assert everything(writer.directory) == {FILE}

    def test_interrupted_process_removes_its_lock(
        self, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        end(holder, signal.SIGINT)
        assert everything(tmp_path / "runs" / "monday") == set()

    def test_process_can_write_again_but_not_twice_at_once(self, tmp_path: Path) -> None:
        for _ in range(2):
            with writing(tmp_path, "monday"):
                with pytest.raises(RunLocked, match=f"process {os.getpid()}"):
                    remove_run(tmp_path, "monday")
                with pytest.raises(RunLocked), writing(tmp_path, "monday"):
                    pass

    def test_error_in_the_writer_releases_the_lock(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError), writing(tmp_path, "monday"):
            _ = 1 / 0
        with writing(tmp_path, "monday"):
            pass


class TestRemoving:
    def test_removed_run_leaves_no_directory(self, run: StoredRun, tmp_path: Path) -> None:
        remove_run(tmp_path, "monday")
        assert not run.directory.exists()
        assert runs(tmp_path) == []

    def test_broken_run_can_be_removed(self, run: StoredRun, tmp_path: Path) -> None:
        (run.directory / FILE).write_text("{")
        remove_run(tmp_path, "monday")
        assert not run.directory.exists()

    def test_removal_of_an_unknown_run_is_refused(self, run: StoredRun, tmp_path: Path) -> None:
        with pytest.raises(UnknownName, match="did you mean monday"):
            remove_run(tmp_path, "munday")
        with pytest.raises(UseError, match="cannot name a run"):
            remove_run(tmp_path, "..")
        assert run.directory.exists()
