"""Writing runs without Spark: what readers see meanwhile, and what writers leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from errno import EDQUOT, ENOSPC
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.permissions import as_a_user
from tests.support.tables import EMPTY, add, everything, links, write
from tests.support.words import naming, unknown
from vizpub.model.errors import DiskFull, RunLocked, StoreBroken, UnknownName, UseError
from vizpub.model.run import NO_NAME_OF_A_RUN
from vizpub.model.tables import LINKS
from vizpub.runstore import durable, leftovers
from vizpub.runstore import writer as writer_module
from vizpub.runstore.leftovers import LET_GO, sweep
from vizpub.runstore.manifest import FILE, Cut, Manifest, Part, Since, read_manifest, write_manifest
from vizpub.runstore.rewriting import first_to_merge
from vizpub.runstore.run_lock import NO_DIRECTORY
from vizpub.runstore.store import StoredRun, open_run, runs
from vizpub.runstore.writer import (
    PENDING,
    RunWriter,
    remove_run,
    removing,
    writing,
)

ROOT = Path(__file__).parents[3]
DONE = replace(EMPTY, state="complete")


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
            add(writer, "again", "links", links(9, seed=2), state="ingesting")
            assert run.read("links").num_rows == 100  # who reads the old one may finish
        assert open_run(tmp_path, "monday", complete=False).read("links").num_rows == 9

    def test_next_writer_removes_files_not_named_by_the_manifest(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        before = everything(run.directory)
        with writing(tmp_path, "monday") as writer:
            for name in ("links", "metrics/peers", "staged/parsed.events", "quarantine"):
                write(writer, name, links(9, seed=2))
            (run.directory / f"{PENDING}.new").write_text("{")
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

    def test_complete_successor_removes_all_files_of_the_old_run(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            writer.commit(DONE)
        assert everything(run.directory) == {FILE}
        assert read_manifest(run.directory) == DONE

    def test_replaced_run_stays_until_its_successor_is_complete(
        self, run: StoredRun, rows: pa.Table, tmp_path: Path
    ) -> None:
        before = everything(run.directory)
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "parse", "staged/parsed.events", rows)
        assert open_run(tmp_path, "monday").read("links").equals(run.read("links"))
        with writing(tmp_path, "monday") as writer:  # as after a kill
            pending = writer.pending()
            assert pending is not None
            assert pending.stages == ("parse",)
            writer.begin(pending)
            assert open_run(tmp_path, "monday").manifest == run.manifest
            writer.restore()
            writer.restore()
            assert writer.manifest == run.manifest
        assert everything(run.directory) == before

    def test_successor_of_another_run_is_let_go(self, run: StoredRun, tmp_path: Path) -> None:
        """A cut may bring back its name when the run has its place already."""
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            left = (run.directory / PENDING).read_bytes()
            add(writer, "versions", "links", links(9, seed=2), state="complete")
        before = everything(run.directory)
        (run.directory / PENDING).write_bytes(left)
        with writing(tmp_path, "monday") as writer:
            assert writer.pending() is None
        assert everything(run.directory) == before

    @pytest.mark.parametrize("text", ["{", "", "[]"])
    def test_broken_run_is_replaced_and_its_files_stay_until_then(
        self, run: StoredRun, tmp_path: Path, text: str
    ) -> None:
        before = everything(run.directory)
        (run.directory / FILE).write_text(text)
        for _ in range(2):  # the first is stopped
            with writing(tmp_path, "monday") as writer:
                assert writer.broken is not None
                writer.begin(EMPTY)
                add(writer, "versions", "links", links(9, seed=2))
                assert everything(run.directory) > before
                assert (run.directory / FILE).read_text() == text
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "versions", "links", links(9, seed=2), state="complete")
        assert open_run(tmp_path, "monday").read("links").num_rows == 9
        assert len(everything(run.directory)) == 4

    def test_written_files_are_listed_and_what_lies_beside_them_is_removed(
        self, tmp_path: Path
    ) -> None:
        with writing(tmp_path, "monday") as writer:
            directory = write(writer, "links", links(41, seed=3))
            (directory / ".part-00000.parquet.crc").write_bytes(b"crc")
            entry = writer.entry(directory)
        assert entry.files is not None
        assert {path.name for path in directory.iterdir()} == {file.name for file in entry.files}
        for file in entry.files:
            content = (directory / file.name).read_bytes()
            assert (file.size, file.crc) == (len(content), zlib.crc32(content))

    def test_new_run_that_cannot_be_made_gives_way(self, tmp_path: Path, rows: pa.Table) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "versions", "links", rows)
            writer.begin(EMPTY)
            writer.restore()
            writer.restore()
            assert writer.manifest is None
        assert everything(tmp_path) == set()
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "versions", "links", rows)
        assert open_run(tmp_path, "monday", complete=False).rows("links") == 100

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


LATE = Cut("valid_to", 40)


def grow(writer: RunWriter, rows: pa.Table, *, finish: bool = True) -> None:
    """Append to the run: its links that end from tick 40 on give way to other rows."""
    base = writer.manifest
    assert base is not None
    writer.begin(replace(EMPTY, extends=base.identity))
    older = base.tables["links"]
    entry = writer.entry(write(writer, "links", rows), writer.cut("links", older.parts, LATE))
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
        wanted = pa.concat_tables([rows.filter(pc.less(rows["valid_to"], 40)), more])
        assert 9 < wanted.num_rows < 109
        assert grown.rows("links") == wanted.num_rows
        order = [(key, "ascending") for key in (*LINKS.key, "valid_to")]
        assert grown.read("links").sort_by(order) == wanted.sort_by(order)
        groups = list(grown.row_groups("links"))
        assert pa.Table.from_batches(b for _, b in groups).sort_by(order) == wanted.sort_by(order)
        assert len({label for label, _ in groups}) == len(groups)
        some = grown.read("links", ["src"], pc.field("valid_from") > 30)
        assert some.num_rows == pc.sum(pc.greater(wanted["valid_from"], 30)).as_py()

    def test_append_writes_only_files_again_that_have_rows_it_replaces(
        self, rows: pa.Table, tmp_path: Path
    ) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "all", "links", rows.sort_by("valid_to"), state="complete")
            *whole, last = open_run(tmp_path, "monday").files("links")
            before = [path.stat().st_ino for path in whole]
            most = [pc.max(pq.read_table(path)["valid_to"]).as_py() for path in (*whole, last)]
            assert max(most[:-1]) < LATE.below <= most[-1]
            grow(writer, links(9, seed=4))
            grow(writer, links(7, seed=5))
        grown = open_run(tmp_path, "monday")
        assert len(grown.manifest.tables["links"].parts) == 3
        assert grown.rows("links") == grown.read("links").num_rows
        first, second, third, *_ = grown.files("links")
        assert [first.stat().st_ino, second.stat().st_ino] == before
        assert last.name not in {path.name for path in grown.files("links")}
        valid = rows.filter(pc.less(rows["valid_to"], LATE.below))
        assert sum(pq.read_metadata(path).num_rows for path in (first, second, third)) == len(valid)

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
            writer.begin(pending)
            writer.restore()
            assert writer.manifest == run.manifest
        assert everything(run.directory) == before

    def test_new_run_discards_the_pending_append(self, run: StoredRun, tmp_path: Path) -> None:
        with writing(tmp_path, "monday") as writer:
            grow(writer, links(9, seed=4), finish=False)
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            writer.commit(DONE)
            assert writer.pending() is None
        assert everything(run.directory) == {FILE}


_HOLD = """
import sys, time
from pathlib import Path
from vizpub.runstore.writer import writing
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
        self, run: StoredRun, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        try:
            with pytest.raises(RunLocked):
                remove_run(tmp_path, "monday")
        finally:
            end(holder, signal.SIGKILL)
        assert open_run(tmp_path, "monday").read("links").num_rows == 100

    def test_lock_of_a_killed_process_is_taken_over(
        self, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        end(holder, signal.SIGKILL)
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
        assert everything(writer.directory) == {FILE}

    @pytest.mark.parametrize("content", [b"", bytes(20), b"47", b"4711\nmach", b"1 elsewhere\n"])
    def test_lock_file_of_nobody_is_in_nobodys_way(self, tmp_path: Path, content: bytes) -> None:
        """A cut left it, or its holder ended in the moment in which it was made."""
        lock = tmp_path / "runs/.monday.lock"
        lock.parent.mkdir()
        lock.write_bytes(content)
        with writing(tmp_path, "monday"):
            pass
        assert everything(tmp_path) == set()

    @pytest.mark.parametrize("content", [b"", bytes(20), b"1 elsewhere\n"])
    def test_lock_holds_whatever_its_file_says(
        self, holder: subprocess.Popen[str], tmp_path: Path, content: bytes
    ) -> None:
        (tmp_path / "runs/.monday.lock").write_bytes(content)
        try:
            with pytest.raises(RunLocked), writing(tmp_path, "monday"):
                pass
        finally:
            end(holder, signal.SIGKILL)

    def test_interrupted_process_removes_its_lock(
        self, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        end(holder, signal.SIGINT)
        assert everything(tmp_path) == set()

    def test_process_can_write_again_but_not_twice_at_once(self, tmp_path: Path) -> None:
        for _ in range(2):
            with (
                writing(tmp_path, "monday"),
                pytest.raises(RunLocked, match=f"process {os.getpid()} "),
                writing(tmp_path, "monday"),
            ):
                pass

    def test_error_in_the_writer_releases_the_lock(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError), writing(tmp_path, "monday"):
            _ = 1 / 0
        with writing(tmp_path, "monday"):
            pass


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of somebody else, with what looks like a run's."""
    folder = tmp_path / "precious"
    (folder / "0123456789ab").mkdir(parents=True)
    (folder / "0123456789ab/part.parquet").write_text("of somebody else")
    (folder / FILE).write_text("{}")
    return folder


class TestLinks:
    @pytest.mark.parametrize("name", ["", "links", "metrics", "staged", "links/old", "links/a/b"])
    @pytest.mark.parametrize("dangling", [False, True])
    def test_link_is_refused_and_not_followed(
        self, tmp_path: Path, precious: Path, name: str, dangling: bool
    ) -> None:
        before, place = everything(precious), tmp_path / "runs/monday" / name
        place.parent.mkdir(parents=True)
        place.symlink_to(tmp_path / "nowhere" if dangling else precious)
        with pytest.raises(UseError, match=naming(place)), writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
        assert everything(precious) == before
        assert not (tmp_path / "nowhere").exists()

    def test_removal_of_a_link_is_refused(self, tmp_path: Path, precious: Path) -> None:
        before, place = everything(precious), tmp_path / "runs/monday"
        place.parent.mkdir()
        place.symlink_to(precious)
        with pytest.raises(UseError, match=naming(f"{place} {NO_DIRECTORY}")):
            remove_run(tmp_path, "monday")
        assert everything(precious) == before

    def test_file_in_the_place_of_a_run_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "runs").mkdir()
        (tmp_path / "runs/monday").write_text("notes")
        with (
            pytest.raises(UseError, match=NO_DIRECTORY),
            writing(tmp_path, "monday") as writer,
        ):
            writer.begin(EMPTY)


class TestRemoving:
    def test_removed_run_leaves_no_lock(self, run: StoredRun, tmp_path: Path) -> None:
        remove_run(tmp_path, "monday")
        assert list((tmp_path / "runs").iterdir()) == []

    def test_run_stays_where_what_goes_before_it_fails(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with pytest.raises(RunLocked), removing(tmp_path, "monday"), writing(tmp_path, "monday"):
            pass  # what the block itself must not do
        assert open_run(tmp_path, "monday").read("links").num_rows == 100

    def test_removed_run_leaves_no_directory(self, run: StoredRun, tmp_path: Path) -> None:
        remove_run(tmp_path, "monday")
        assert not run.directory.exists()
        assert runs(tmp_path) == []

    def test_broken_run_can_be_removed(self, run: StoredRun, tmp_path: Path) -> None:
        (run.directory / FILE).write_text("{")
        remove_run(tmp_path, "monday")
        assert not run.directory.exists()

    def test_removal_of_an_unknown_run_is_refused(self, run: StoredRun, tmp_path: Path) -> None:
        with pytest.raises(UnknownName, match=unknown("run", "munday", "monday")):
            remove_run(tmp_path, "munday")
        with pytest.raises(UseError, match=NO_NAME_OF_A_RUN):
            remove_run(tmp_path, "..")
        assert run.directory.exists()


class TestPermissions:
    @pytest.mark.parametrize("number", [ENOSPC, EDQUOT])
    def test_full_disk_and_used_up_quota_are_told_alike(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        def full(*paths: Path) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(durable, "rename", full)
        with pytest.raises(DiskFull, match=naming(tmp_path)), writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)

    def test_run_that_may_not_be_written_is_refused_with_the_path(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        before = everything(run.directory)
        run.directory.chmod(0o500)
        with as_a_user():
            with (
                pytest.raises(UseError, match=f"{run.directory}.*Permission denied"),
                writing(tmp_path, "monday") as writer,
            ):
                writer.begin(EMPTY)
            with pytest.raises(UseError, match=f"{run.directory}.*Permission denied"):
                remove_run(tmp_path, "monday")
        run.directory.chmod(0o700)
        assert everything(run.directory) == before

    def test_leavings_that_may_not_be_removed_are_told_of(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        with writing(tmp_path, "monday") as writer:
            left = write(writer, "links", links(9, seed=2))
        left.chmod(0o500)
        # From Python 3.13 on, the error has the path of what is left, before only its name.
        place = f"{run.directory}(/data/links/{left.name})?"
        with (
            as_a_user(),
            pytest.raises(UseError, match=f"{place}: Permission denied"),
            writing(tmp_path, "monday"),
        ):
            pass
        left.chmod(0o700)

    def test_workspace_that_may_not_be_written_is_refused(
        self, run: StoredRun, tmp_path: Path
    ) -> None:
        (tmp_path / "runs").chmod(0o500)
        with (
            as_a_user(),
            pytest.raises(UseError, match=naming(".monday.lock", "Permission denied")),
            writing(tmp_path, "monday"),
        ):
            pass
        (tmp_path / "runs").chmod(0o700)


class TestMerging:
    def test_table_that_grows_forever_has_few_parts(self) -> None:
        """Whatever the sizes: a row is written again a few times, and no table has 32 parts."""
        for seed in range(20):
            sizes, written, rng = list[int](), 0, np.random.default_rng(seed)
            grown = [int(size) for size in rng.pareto(0.7, 3000) * 500]
            for size in grown:
                sizes.append(size)
                kept = first_to_merge(sizes)
                written += sum(sizes[kept:])
                sizes[kept:] = [sum(sizes[kept:])] if kept < len(sizes) else []
                assert len(sizes) < 32, seed
            assert sum(sizes) == sum(grown)
            assert written < 40 * sum(grown), seed

    def test_merged_part_is_one_row_group(self, tmp_path: Path) -> None:
        """Groups of an append's few rows would each take kilobytes, and time of each reader."""
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            parts: tuple[Part, ...] = ()
            for seed in range(30):
                parts = writer.merge("links", parts)
                parts = writer.entry(write(writer, "links", links(7, seed)), parts).parts
            joined = max(parts, key=lambda part: part.rows)
            assert joined.rows > 100
            (file,) = joined.files or ()
            stored = pq.read_metadata(writer.directory / joined.directory / file.name)
            assert stored.num_row_groups == 1

    def test_change_of_merged_parts_gets_the_newest_first(self, tmp_path: Path) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            parts: tuple[Part, ...] = ()
            for seed in range(4):
                parts = writer.entry(write(writer, "links", links(7, seed)), parts).parts
            wanted = [row for seed in (3, 2, 1, 0) for row in links(7, seed).to_pylist()]
            seen = list[object]()

            def only_newest(rows: pa.RecordBatch) -> pa.RecordBatch:
                seen.extend(rows.to_pylist())
                return rows if len(seen) <= 7 else rows.slice(0, 0)

            (joined,) = writer.merge("links", parts, only_newest)
            assert seen == wanted
            assert joined.rows == 7

    def test_merged_parts_have_the_rows_that_are_valid(self, tmp_path: Path) -> None:
        """And only files that may have the wanted rows are opened."""
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "first", "links", links(50, seed=0), state="complete")
            for seed in range(1, 9):
                stored = writer.stored
                assert stored is not None
                cut = Cut("valid_to", 40 + seed)
                parts = writer.cut("links", stored.tables["links"].parts, cut)
                before = StoredRun(writer.directory, stored).read("links")
                fresh = links(50, seed)
                if seed % 2:  # which columns can be null depends on who wrote it
                    lax = [of.with_nullable(True) for of in fresh.schema]
                    fresh = fresh.cast(pa.schema(lax))
                entry = writer.entry(write(writer, "links", fresh), writer.merge("links", parts))
                writer.commit(replace(stored, tables={"links": entry}))
                run = open_run(tmp_path, "monday")
                valid = before.filter(pc.field("valid_to") < cut.below)
                wanted = pa.concat_tables([valid, fresh.cast(valid.schema)])
                assert sorted(map(repr, run.read("links").to_pylist())) == sorted(
                    map(repr, wanted.to_pylist())
                )
                assert len(entry.parts) <= 4
                late = Since("valid_to", 45)
                scanned = pa.Table.from_batches(run.scan("links", since=late), LINKS.arrow)
                assert scanned == pa.Table.from_batches(
                    run.rows_from("links", "valid_to", 45), LINKS.arrow
                )
                assert sorted(map(repr, scanned.to_pylist())) == sorted(
                    map(repr, run.read("links").filter(pc.field("valid_to") >= 45).to_pylist())
                )

    def test_file_that_cannot_have_the_wanted_rows_is_not_opened(self, tmp_path: Path) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            rows = links(30, seed=3).sort_by("valid_to")
            add(writer, "first", "links", rows, state="complete")
        run = open_run(tmp_path, "monday")
        first, *_, last = run.files("links")
        first.unlink()
        most = rows["valid_to"][-1].as_py()
        found = list(run.rows_from("links", "valid_to", most))
        assert sum(map(len, found)) == pc.sum(pc.equal(rows["valid_to"], most)).as_py()
        last.unlink()
        with pytest.raises(StoreBroken, match=last.name):
            list(run.scan("links", since=Since("valid_to", most)))


class TestReaders:
    @pytest.fixture
    def hours(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
        """Turns the clock on by so many hours."""
        monkeypatch.setattr(leftovers, "KEPT_SECONDS", 600)
        now = leftovers.time.time()

        def turn(by: float) -> None:
            monkeypatch.setattr(leftovers.time, "time", lambda: now + by * 3600)

        return turn

    def replaced(self, tmp_path: Path, seed: int) -> None:
        with writing(tmp_path, "monday") as writer:
            writer.begin(EMPTY)
            add(writer, "again", "links", links(9, seed=seed), state="complete")

    def test_reader_of_a_replaced_run_reads_on_for_ten_minutes(
        self, run: StoredRun, rows: pa.Table, tmp_path: Path, hours: Callable[[float], None]
    ) -> None:
        before = everything(run.directory)
        self.replaced(tmp_path, 2)
        second = open_run(tmp_path, "monday")
        hours(0.1)
        self.replaced(tmp_path, 3)
        assert run.read("links").num_rows == 100
        assert second.read("links").num_rows == 9
        hours(0.2)
        with writing(tmp_path, "monday"):
            assert second.read("links").num_rows == 9
            assert not everything(run.directory) & (before - {FILE})
        hours(0.3)
        with writing(tmp_path, "monday"):
            assert everything(run.directory) == {
                FILE,
                *(
                    str(file.relative_to(run.directory))
                    for file in open_run(tmp_path, "monday").files("links")
                ),
            }

    def test_next_command_removes_what_no_reader_needs(
        self, run: StoredRun, tmp_path: Path, hours: Callable[[float], None]
    ) -> None:
        before = everything(run.directory)
        self.replaced(tmp_path, 2)
        sweep(tmp_path)
        assert before < everything(run.directory)
        hours(0.2)
        sweep(tmp_path)
        assert everything(run.directory) & before == {FILE}
        assert open_run(tmp_path, "monday").read("links").num_rows == 9

    def test_kill_just_after_a_commit_lets_the_next_command_remove_them_too(
        self,
        run: StoredRun,
        tmp_path: Path,
        hours: Callable[[float], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        before = everything(run.directory)

        def killed(directory: Path, manifest: Manifest, *file: str) -> None:
            write_manifest(directory, manifest, *file)
            if manifest.complete:
                raise KeyboardInterrupt

        monkeypatch.setattr(writer_module, "write_manifest", killed)
        with pytest.raises(KeyboardInterrupt):
            self.replaced(tmp_path, 2)
        assert before < everything(run.directory)
        hours(0.2)
        sweep(tmp_path)
        assert everything(run.directory) & before == {FILE}
        assert open_run(tmp_path, "monday").read("links").num_rows == 9

    def test_files_let_go_before_a_clock_was_set_back_are_removed(
        self, run: StoredRun, tmp_path: Path, hours: Callable[[float], None]
    ) -> None:
        before = everything(run.directory)
        hours(1000)
        self.replaced(tmp_path, 2)
        later = leftovers.time.time()
        os.utime(run.directory / LET_GO, (later, later))
        assert before < everything(run.directory)
        hours(0)
        sweep(tmp_path)
        assert everything(run.directory) & before == {FILE}
