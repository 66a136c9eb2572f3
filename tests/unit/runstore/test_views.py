"""What other programs see of a run: its rows, or no file, whatever is done to it meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.foreign import NOTHING, PROGRAMS, digest, reading
from tests.support.tables import EMPTY, add, everything, links, write
from tests.support.words import naming
from vizpub.machine.files import bytes_below
from vizpub.model.errors import StoreBroken, UnknownName, UseError
from vizpub.runstore import durable
from vizpub.runstore.leftovers import sweep
from vizpub.runstore.manifest import FILE, Cut, Manifest
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.views import VIEW, VIEWS, damages, folder
from vizpub.runstore.writer import RunWriter, remove_run, writing


@pytest.fixture(autouse=True)
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vizpub.runstore.leftovers.KEPT_SECONDS", 600)


def grow(writer: RunWriter, seed: int) -> None:
    """Append: the links that end late give way to others."""
    base = writer.stored
    assert base is not None
    writer.begin(replace(EMPTY, extends=base.identity))
    older = writer.cut("links", base.tables["links"].parts, Cut("valid_to", 30 + seed % 20))
    entry = writer.entry(write(writer, "links", links(20, seed), 2), writer.merge("links", older))
    done = replace(base, tables={**base.tables, "links": entry}, generation=base.generation + 1)
    writer.commit(done)


def make(writer: RunWriter, seed: int) -> None:
    """Make the run anew."""
    writer.begin(EMPTY)
    add(writer, "all", "links", links(60, seed), state="complete")


def seen(run: StoredRun) -> pa.Table:
    return pq.read_table(run.directory / "links")


@pytest.mark.parametrize("changes", [60, pytest.param(400, marks=pytest.mark.long)])
def test_programs_see_one_state_of_a_run_or_no_file(tmp_path: Path, changes: int) -> None:
    """While it grows and is made anew, as fast as that goes."""
    known = set()
    with writing(tmp_path, "monday") as writer:
        make(writer, 0)
        run = open_run(tmp_path, "monday")
        known.add(digest(run.read("links")))
        with reading(run.directory / "links", tmp_path, PROGRAMS) as found:
            for seed in range(1, changes):
                (grow if seed % 7 else make)(writer, seed)
                known.add(digest(open_run(tmp_path, "monday").read("links")))
    assert len(known) == changes
    for program, told in found.items():
        print(program, sum(told.values()), "readings,", told[NOTHING], "found nothing")
        assert told.keys() - {NOTHING} <= known, program
        assert len(told.keys() - {NOTHING}) > 1, program


def test_view_stays_as_it_was_while_the_run_changes(run: StoredRun, tmp_path: Path) -> None:
    before, there = run.read("links"), folder(run, "links")
    with writing(tmp_path, "monday") as writer:
        for seed in (1, 2):
            make(writer, seed)
            grow(writer, seed)
    assert digest(pq.read_table(there)) == digest(before)
    now = open_run(tmp_path, "monday")
    assert digest(seen(now)) == digest(now.read("links")) != digest(before)
    assert {*run.directory.glob(f"{VIEWS}/*")} >= {there.parent, run.directory / now.manifest.view}


def test_views_are_removed_when_no_reader_can_need_them(
    run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vizpub.runstore.leftovers.KEPT_SECONDS", 0)
    with writing(tmp_path, "monday") as writer:
        grow(writer, 1)
        (run.directory / VIEWS / "left").mkdir()
        (run.directory / "links.new").symlink_to(f"{VIEW}/links")  # as a kill leaves it
    with writing(tmp_path, "monday"):
        pass
    now = open_run(tmp_path, "monday")
    assert [*run.directory.glob(f"{VIEWS}/*")] == [run.directory / now.manifest.view]
    assert {path.name for path in run.directory.iterdir()} == {
        FILE, "data", VIEWS, VIEW, "links"
    }  # fmt: skip


def test_files_of_a_table_have_all_its_rows_and_one_schema(tmp_path: Path) -> None:
    with writing(tmp_path, "monday") as writer:
        make(writer, 0)
        for seed in range(1, 9):
            grow(writer, seed)
    run = open_run(tmp_path, "monday")
    paths = run.files("links")
    assert digest(pa.concat_tables(map(pq.read_table, paths))) == digest(run.read("links"))
    assert sum(pq.read_metadata(path).num_rows for path in paths) == run.rows("links")
    through = [*(run.directory / "links").iterdir()]
    assert {path.stat().st_ino for path in through} == {path.stat().st_ino for path in paths}


def test_view_is_shown_by_the_next_writer_after_a_kill(
    run: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the commit and the switch other programs see the run as it was."""
    before = run.read("links")

    def killed(directory: Path, manifest: Manifest) -> None:
        if manifest.view != run.manifest.view:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, writing(tmp_path, "monday") as writer:
        patch.setattr("vizpub.runstore.views.show", killed)
        with pytest.raises(KeyboardInterrupt):
            make(writer, 5)
    now = open_run(tmp_path, "monday")
    assert digest(now.read("links")) != digest(before) == digest(seen(now))
    sweep(tmp_path)  # as each command does
    assert digest(seen(now)) == digest(now.read("links"))


def test_table_that_the_run_no_longer_has_is_not_found(run: StoredRun, tmp_path: Path) -> None:
    with writing(tmp_path, "monday") as writer:
        writer.begin(EMPTY)
        add(writer, "all", "dangling_links", links(5, 1), state="complete")
    assert not os.path.lexists(run.directory / "links")
    assert pq.read_table(run.directory / "dangling_links").num_rows == 5
    with pytest.raises(UnknownName, match="dangling_links"):
        folder(open_run(tmp_path, "monday"), "links")


def test_removed_run_is_not_found(run: StoredRun, tmp_path: Path) -> None:
    there = folder(run, "links")
    remove_run(tmp_path, "monday")
    assert not there.exists()
    assert not (run.directory / "links").exists()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_file_system_without_hard_links_has_no_folders_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(durable, "link", refused)
    with writing(tmp_path, "monday") as writer:
        make(writer, 0)
        grow(writer, 1)
    run = open_run(tmp_path, "monday")
    assert list(damages(run.directory, run.manifest)) == []
    assert run.read("links").num_rows == run.rows("links")
    assert {path.name for path in run.directory.iterdir()} == {FILE, "data", "let-go"}
    with pytest.raises(UseError, match=naming("runs files monday")):
        folder(run, "links")


def lose(run: Path, view: Path) -> str:
    """The first file of the view."""
    first = min(view.glob("links/*.parquet"))
    first.unlink()
    return f"{view.relative_to(run)}/links/{first.name}"


def add_one(run: Path, view: Path) -> str:
    pq.write_table(links(3, seed=9), view / "links/mine.parquet")
    return f"{view.relative_to(run)}/links/mine.parquet"


def add_a_folder(run: Path, view: Path) -> str:
    (view / "links/deep").mkdir()
    return f"{view.relative_to(run)}/links/deep"


def exchange(run: Path, view: Path) -> str:
    first, second, *_ = sorted(view.glob("links/*.parquet"))
    second.unlink()
    os.link(first, second)
    return f"{view.relative_to(run)}/links/{second.name}"


def lead_to_an_earlier(run: Path, view: Path) -> str:
    (earlier,) = {*(run / VIEWS).iterdir()} - {view}
    (run / VIEW).unlink()
    (run / VIEW).symlink_to(f"{VIEWS}/{earlier.name}")
    return VIEW


def lose_a_link(run: Path, view: Path) -> str:
    del view
    (run / "links").unlink()
    return "links"


def lead_a_table_that_is_not_there(run: Path, view: Path) -> str:
    del view
    (run / "roles").symlink_to(f"{VIEW}/roles")
    return "roles"


@pytest.mark.parametrize(
    "harm",
    [
        *(lose, add_one, add_a_folder, exchange),
        *(lead_to_an_earlier, lose_a_link, lead_a_table_that_is_not_there),
    ],
)
def test_folders_that_are_not_as_the_run_are_found_and_made_anew(
    tmp_path: Path, harm: Callable[[Path, Path], str]
) -> None:
    with writing(tmp_path, "monday") as writer:
        make(writer, 0)
        make(writer, 1)
    run = open_run(tmp_path, "monday")
    assert list(damages(run.directory, run.manifest)) == []
    name = harm(run.directory, run.directory / run.manifest.view)
    assert [one.file for one in damages(run.directory, run.manifest)] == [name]
    with writing(tmp_path, "monday") as writer:
        writer.show_again()
    now = open_run(tmp_path, "monday")
    assert list(damages(now.directory, now.manifest)) == []
    assert digest(seen(now)) == digest(run.read("links"))


def test_copied_run_has_folders_as_it_is(run: StoredRun, tmp_path: Path) -> None:
    """Each name has a file of its own there."""
    copy = shutil.copytree(run.directory, tmp_path / "copy", symlinks=True)
    assert list(damages(copy, run.manifest)) == []
    with next((copy / run.manifest.view / "links").iterdir()).open("r+b") as file:
        file.write(b"other")
    assert len(list(damages(copy, run.manifest))) == 1


def test_lost_file_ends_a_commit_in_words(run: StoredRun, tmp_path: Path) -> None:
    lost, *_ = run.files("links")
    lost.unlink()
    with writing(tmp_path, "monday") as writer:
        assert writer.stored is not None
        with pytest.raises(StoreBroken, match=lost.name):
            writer.commit(writer.stored)
    assert open_run(tmp_path, "monday").manifest == run.manifest


def test_run_of_an_earlier_format_is_replaced(tmp_path: Path) -> None:
    """Its files were where the folders are now."""
    there = tmp_path / "runs/monday"
    for name in ("links/0123", "metrics/overlay/0123", "staged/parsed/0123"):
        (there / name).mkdir(parents=True)
        pq.write_table(links(9, 1), there / name / "a.parquet")
    (there / FILE).write_text('{"format": "vizpub.store/4"}')
    with writing(tmp_path, "monday") as writer:
        make(writer, 2)
    run = open_run(tmp_path, "monday")
    assert digest(seen(run)) == digest(run.read("links"))
    assert {path.name for path in there.iterdir()} == {FILE, "data", VIEWS, VIEW, "links"}


def test_sizes_count_a_file_once(run: StoredRun, tmp_path: Path) -> None:
    files = sum((run.directory / path).stat().st_size for path in everything(run.directory))
    assert bytes_below(run.directory) == files
