"""Archives of runs: what comes back is what went in, and an archive that is not whole or not ours
changes nothing.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from errno import ENOSPC
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest

from tests.support.crashes import Disk, Recorder
from tests.support.reserved import Reserved
from tests.support.scripted import FIRST, SECOND, ingest, wanted
from tests.support.tables import everything
from tests.support.words import naming
from vizpub.model.errors import DiskFull, RunChanged, RunCollected, StoreBroken, UseError
from vizpub.runstore import archive, collection, durable, writer
from vizpub.runstore.archive import export_run, import_run
from vizpub.runstore.collection import Collected
from vizpub.runstore.integrity import damages
from vizpub.runstore.journal import FILE as JOURNAL
from vizpub.runstore.leftovers import sweep
from vizpub.runstore.manifest import FILE, read_manifest
from vizpub.runstore.store import StoredRun, open_run, run_names
from vizpub.runstore.views import damages as damages_of_views
from vizpub.runstore.writer import remove_run

SUFFIXES = ("tar", "tar.gz", "tar.zst")
Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def grown(tmp_path: Path) -> StoredRun:
    """A run with files of an ingest and of an append, and tables that are kept for the next."""
    ingest(tmp_path / "ws", wanted(FIRST))
    ingest(tmp_path / "ws", wanted(FIRST, SECOND, append=True))
    return open_run(tmp_path / "ws", "monday")


@pytest.fixture
def collected(tmp_path: Path) -> Reserved:
    """A paused collection with a run, a log, batches and a token."""
    case = Reserved(tmp_path / "ws")
    case.append()
    (case.of.log / f"{0:020}.log.gz").write_bytes(gzip.compress(b"sealed"))
    (case.of.log / f"{6:020}.log").write_bytes(b"open")
    (case.of.log / ".half.gz").write_bytes(b"half")
    (case.of.folder / "options.json").write_text("{}")
    (case.of.folder / "tokens").mkdir(mode=0o700)
    (case.of.folder / "tokens/report").write_text("secret\n")
    return case


def tables(run: StoredRun) -> dict[str, pa.Table]:
    return {name: run.read(name) for name in run.manifest.tables if not name.startswith("staged/")}


def check_whole(run: StoredRun) -> None:
    assert not any(damages(run.directory, run.manifest))
    assert not [*damages_of_views(run.directory, run.manifest)]


def state(workspace: Path) -> dict[str, bytes]:
    """The files of a workspace, and what they contain."""
    return {name: (workspace / name).read_bytes() for name in everything(workspace)}


def members(path: Path) -> Members:
    with tarfile.open(path) as tar:
        return [(one, (tar.extractfile(one) or io.BytesIO()).read()) for one in tar]


def rewritten(path: Path, parts: Members, form: int = tarfile.USTAR_FORMAT) -> Path:
    with tarfile.open(path, "w", format=form) as tar:
        for entry, content in parts:
            if entry.isreg():
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def listing(parts: Members, change: Callable[[dict[str, Any]], None]) -> Members:
    """The members with another list."""
    content = json.loads(parts[0][1])
    change(content)
    return [(parts[0][0], json.dumps(content).encode()), *parts[1:]]


class TestRoundTrip:
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_run_comes_back_cell_by_cell(
        self, grown: StoredRun, tmp_path: Path, suffix: str
    ) -> None:
        file = tmp_path / f"monday.{suffix}"
        (grown.directory / JOURNAL).write_text('{"what": "ingest"}\n')
        export_run(grown, file)
        assert file.stat().st_mode & 0o777 == 0o600
        back = import_run(file, tmp_path / "other")
        assert tables(back) == tables(grown)
        assert back.manifest.carry.keys() == grown.manifest.carry.keys()
        for column in ("inputs", "options", "stages", "formats", "totals", "generation", "notes"):
            assert getattr(back.manifest, column) == getattr(grown.manifest, column)
        check_whole(back)
        assert (back.directory / JOURNAL).read_text() == '{"what": "ingest"}\n'

    def test_archive_is_a_tar_that_other_programs_read(
        self, grown: StoredRun, tmp_path: Path
    ) -> None:
        export_run(grown, file := tmp_path / "monday.tar.gz")
        (tmp_path / "out").mkdir()
        subprocess.run(["tar", "xzf", str(file), "-C", str(tmp_path / "out")], check=True)
        for part in grown.manifest.parts:
            for stored in part.files or ():
                name = f"{part.directory}/{stored.name}"
                assert (tmp_path / "out" / name).read_bytes() == (
                    grown.directory / name
                ).read_bytes()

    def test_imported_run_can_be_appended_to(self, tmp_path: Path) -> None:
        ingest(tmp_path / "ws", wanted(FIRST))
        export_run(open_run(tmp_path / "ws", "monday"), tmp_path / "monday.tar")
        import_run(tmp_path / "monday.tar", tmp_path / "other")
        for workspace in ("ws", "other"):
            ingest(tmp_path / workspace, wanted(FIRST, SECOND, append=True))
        here, there = (open_run(tmp_path / name, "monday") for name in ("ws", "other"))
        assert tables(here) == tables(there)
        assert len(there.manifest.inputs) == 2

    def test_export_replaces_an_older_file_or_leaves_it(
        self, grown: StoredRun, tmp_path: Path
    ) -> None:
        file = tmp_path / "monday.tar"
        file.write_text("older")
        damaged = next(iter(grown.files("links")))
        content = damaged.read_bytes()
        damaged.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        with pytest.raises(StoreBroken, match=naming(damaged.name)):
            export_run(grown, file)
        assert file.read_text() == "older"
        damaged.write_bytes(content)
        export_run(grown, file)
        assert members(file)[0][0].name == "archive.json"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["monday.tar", "ws"]

    def test_run_that_is_gone_has_changed(self, grown: StoredRun, tmp_path: Path) -> None:
        remove_run(tmp_path / "ws", "monday")
        with pytest.raises(RunChanged):
            export_run(grown, tmp_path / "monday.tar")

    def test_suffix_says_the_form(self, grown: StoredRun, tmp_path: Path) -> None:
        with pytest.raises(UseError, match=naming(".tar", ".gz", ".zst")):
            export_run(grown, tmp_path / "monday.zip")


class TestNames:
    def test_run_gets_the_given_name(self, grown: StoredRun, tmp_path: Path) -> None:
        export_run(grown, tmp_path / "monday.tar")
        assert import_run(tmp_path / "monday.tar", tmp_path / "ws", "tuesday").name == "tuesday"
        assert run_names(tmp_path / "ws") == ["monday", "tuesday"]

    @pytest.mark.parametrize("name", ["../up", "/tmp/x", "", "a/b", ".lab", "-x", "x" * 101])
    def test_name_that_no_run_can_have_is_refused(
        self, grown: StoredRun, tmp_path: Path, name: str
    ) -> None:
        export_run(grown, file := tmp_path / "monday.tar")
        rewritten(tmp_path / "named.tar", listing(members(file), lambda of: of.update(run=name)))
        before = state(tmp_path / "ws")
        with pytest.raises(UseError):
            import_run(tmp_path / "named.tar", tmp_path / "ws")
        if name:
            with pytest.raises(UseError):
                import_run(file, tmp_path / "ws", name)
        assert state(tmp_path / "ws") == before

    def test_existing_run_stays_unless_it_is_replaced(
        self, grown: StoredRun, tmp_path: Path
    ) -> None:
        export_run(grown, tmp_path / "monday.tar")
        ingest(tmp_path / "other", wanted(SECOND))
        before = state(tmp_path / "other")
        with pytest.raises(UseError, match=naming("monday", "--as", "--replace")):
            import_run(tmp_path / "monday.tar", tmp_path / "other")
        assert state(tmp_path / "other") == before
        back = import_run(tmp_path / "monday.tar", tmp_path / "other", replaces=True)
        assert tables(back) == tables(grown)
        check_whole(back)

    def test_broken_run_is_replaced(self, grown: StoredRun, tmp_path: Path) -> None:
        export_run(grown, tmp_path / "monday.tar")
        rows = tables(grown)
        (grown.directory / FILE).write_text("{")
        with pytest.raises(UseError, match=naming("--replace")):
            import_run(tmp_path / "monday.tar", tmp_path / "ws")
        back = import_run(tmp_path / "monday.tar", tmp_path / "ws", replaces=True)
        assert tables(back) == rows
        check_whole(back)


class TestCollections:
    def test_collection_comes_back_and_owns_its_run(
        self, collected: Reserved, tmp_path: Path
    ) -> None:
        export_run(open_run(tmp_path / "ws", "lab"), tmp_path / "lab.tar.zst", with_log=True)
        back = import_run(tmp_path / "lab.tar.zst", tmp_path / "other")
        of = Collected(tmp_path / "other", "lab")
        assert of.owns(back.manifest)
        names = {"identity", "options.json", "tokens/report", "batches/1"}
        names |= {f"log/{0:020}.log.gz", f"log/{6:020}.log"}
        assert everything(of.folder) == names
        for name in names:
            assert (of.folder / name).read_bytes() == (collected.of.folder / name).read_bytes()
            assert (of.folder / name).stat().st_mode & 0o777 == 0o600
        assert of.folder.stat().st_mode & 0o777 == 0o700

    def test_run_without_its_log_is_of_no_collection(
        self, collected: Reserved, tmp_path: Path
    ) -> None:
        export_run(open_run(tmp_path / "ws", "lab"), tmp_path / "lab.tar")
        back = import_run(tmp_path / "lab.tar", tmp_path / "other", "copy")
        assert back.manifest.collection == ""
        assert not (tmp_path / "other/collected").exists()
        export_run(back, tmp_path / "copy.tar")
        with pytest.raises(UseError, match=naming("copy", "--with-log")):
            export_run(back, tmp_path / "copy.tar", with_log=True)

    def test_log_is_read_at_one_moment(
        self, collected: Reserved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While it is looked at, a segment is sealed, and another batch reaches behind it."""
        look, of = collection._plain_files, collected.of
        plain = of.log / f"{6:020}.log"
        calls: list[Path] = []

        def looking(folder: Path) -> list[Path]:
            files = look(folder)
            calls.append(folder)
            if folder == of.log and calls.count(of.log) == 1:
                plain.rename(plain.with_suffix(".log.gz"))
            if folder == of.log and calls.count(of.log) == 2:
                (of.batches / "2").write_text("next")
            return files

        monkeypatch.setattr(collection, "_plain_files", looking)
        export_run(open_run(tmp_path / "ws", "lab"), tmp_path / "lab.tar", with_log=True)
        names = [entry.name for entry, _ in members(tmp_path / "lab.tar")]
        assert f"collection/log/{6:020}.log.gz" in names
        assert f"collection/log/{6:020}.log" not in names
        assert "collection/batches/2" in names

    def test_growing_segment_is_cut_where_it_was(
        self, collected: Reserved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        segment, add = collected.of.log / f"{6:020}.log", archive._add

        def adding(*arguments: Any) -> None:
            with segment.open("ab") as file:
                file.write(b"later")
            add(*arguments)

        monkeypatch.setattr(archive, "_add", adding)
        export_run(open_run(tmp_path / "ws", "lab"), tmp_path / "lab.tar", with_log=True)
        back = import_run(tmp_path / "lab.tar", tmp_path / "other")
        log = back.directory.parents[1] / "collected/lab/log"
        assert (log / segment.name).read_bytes() == b"open"

    def test_run_of_a_collection_is_not_replaced(self, collected: Reserved, tmp_path: Path) -> None:
        export_run(open_run(tmp_path / "ws", "lab"), tmp_path / "lab.tar")
        before = state(tmp_path / "ws")
        for hold in (True, False):
            lock = collected.of.hold() if hold else nullcontext()
            with lock, pytest.raises(RunCollected):
                import_run(tmp_path / "lab.tar", tmp_path / "ws", replaces=True)
        assert state(tmp_path / "ws") == before

    def test_other_log_stays(self, collected: Reserved, tmp_path: Path) -> None:
        export_run(open_run(tmp_path / "ws", "lab"), tmp_path / "lab.tar", with_log=True)
        remove_run(tmp_path / "ws", "lab")
        before = state(tmp_path / "ws")
        with pytest.raises(UseError, match=naming("vizpub runs remove lab --with-log")):
            import_run(tmp_path / "lab.tar", tmp_path / "ws", replaces=True)
        with pytest.raises(UseError, match=naming("lab", "--as", "--with-log")):
            import_run(tmp_path / "lab.tar", tmp_path / "ws", "other")
        assert state(tmp_path / "ws") == before


def test_run_json_of_any_size_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of a small archive may claim any size for it; what is packed is small."""
    monkeypatch.setattr(archive, "_MOST_TEXT", 10_000)
    listed = {"format": archive.FORMAT, "run": "monday", "files": {FILE: [20_000, 0]}}
    parts = [(archive.LIST, json.dumps(listed).encode()), (FILE, bytes(20_000))]
    rewritten(tmp_path / "a.tar", [(tarfile.TarInfo(name), content) for name, content in parts])
    with pytest.raises(StoreBroken, match=f"{FILE} is too large"):
        import_run(tmp_path / "a.tar", tmp_path / "ws")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_archive_from_a_pipe_is_imported(grown: StoredRun, tmp_path: Path, suffix: str) -> None:
    export_run(grown, file := tmp_path / f"monday.{suffix}")
    os.mkfifo(pipe := tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", 'exec cat "$1" >"$2"', "sh", str(file), str(pipe)]):
        assert tables(import_run(pipe, tmp_path / "other")) == tables(grown)


def hostile(parts: Members) -> Iterator[tuple[str, Members]]:
    """Archives that somebody made to write elsewhere, or more than there is."""
    entry = parts[2][0]

    def instead(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Members:
        other = tarfile.TarInfo(name)
        other.type, other.linkname = kind, link
        return [*parts[:2], (other, parts[2][1] if kind == tarfile.REGTYPE else b""), *parts[3:]]

    yield "parent", instead("../evil")
    yield "absolute", instead("/tmp/vizpub-evil")
    yield "symbolic link", instead(entry.name, tarfile.SYMTYPE, "/etc/passwd")
    yield "hard link", instead(entry.name, tarfile.LNKTYPE, "run.json")
    yield "device", instead(entry.name, tarfile.CHRTYPE)
    yield "pipe", instead(entry.name, tarfile.FIFOTYPE)
    yield "folder", instead(entry.name, tarfile.DIRTYPE)
    yield "other order", [*parts[:2], *reversed(parts[2:])]
    yield "twice", [*parts[:3], *parts[2:]]
    yield "additional", [*parts, (tarfile.TarInfo("additional"), b"x")]
    yield "without a file", parts[:-1]
    yield "no list", parts[1:]
    yield "nothing", []
    for name in ("collection/../../evil", "collection/log/../x", "collection/log/.x", "evil", ""):
        more = (tarfile.TarInfo(name), b"x")
        listed = {name: [1, crc32(b"x")]}
        yield f"listed {name}", listing([*parts, more], lambda of, a=listed: of["files"].update(a))
    yield "negative", listing(parts, lambda of: of["files"].update({entry.name: [-1, 0]}))
    yield "shorter", listing(parts, lambda of: of["files"].update({entry.name: [1, 0]}))
    yield "other format", listing(parts, lambda of: of.update(format="vizpub.archive/2"))
    yield (
        "run.json not first",
        listing(parts, lambda of: of.update(files=dict(reversed([*of["files"].items()])))),
    )


class TestHostile:
    def test_hostile_archive_changes_nothing(self, grown: StoredRun, tmp_path: Path) -> None:
        export_run(grown, tmp_path / "monday.tar")
        before, outside = state(tmp_path / "ws"), {*tmp_path.iterdir()}
        for name, parts in hostile(members(tmp_path / "monday.tar")):
            file = rewritten(tmp_path / "hostile.tar", parts)
            for run in (None, "other"):
                with pytest.raises((StoreBroken, UseError), match=naming(file)):
                    import_run(file, tmp_path / "ws", run, replaces=True)
                assert state(tmp_path / "ws") == before, name
        assert {*tmp_path.iterdir()} - outside == {file}
        assert not Path("/tmp/vizpub-evil").exists()

    @pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
    def test_long_names_are_not_followed(self, grown: StoredRun, tmp_path: Path, form: int) -> None:
        export_run(grown, tmp_path / "monday.tar")
        parts = members(tmp_path / "monday.tar")
        parts.insert(2, (tarfile.TarInfo("\N{SNOWMAN}" * 300), b"x"))
        file = rewritten(tmp_path / "long.tar", parts, form)
        with pytest.raises(StoreBroken):
            import_run(file, tmp_path / "other")

    @pytest.mark.parametrize("suffix", ["gz", "zst"])
    def test_bomb_is_refused_before_it_is_unpacked(
        self, grown: StoredRun, tmp_path: Path, suffix: str
    ) -> None:
        """A list or a file as large as no disk, and a text as large as the memory."""
        export_run(grown, tmp_path / "monday.tar")
        parts = members(tmp_path / "monday.tar")
        huge = tarfile.TarInfo(parts[2][0].name)
        huge.size = 2**50
        large = listing(parts, lambda of: of["files"].update({huge.name: [huge.size, 0]}))
        heads = [
            one[0].tobuf(tarfile.USTAR_FORMAT) + one[1].ljust(-(-len(one[1]) // 512) * 512, b"\0")
            for one in rewrite_sizes(large[:2])
        ]
        text = tarfile.TarInfo("archive.json")
        text.size = 2**33
        for content in (
            b"".join(heads) + huge.tobuf(tarfile.GNU_FORMAT) + bytes(2**24),
            text.tobuf(tarfile.GNU_FORMAT) + bytes(2**24),
        ):
            file = tmp_path / f"bomb.tar.{suffix}"
            with pa.CompressedOutputStream(str(file), "gzip" if suffix == "gz" else "zstd") as out:
                out.write(content)
            with pytest.raises((StoreBroken, UseError)):
                import_run(file, tmp_path / "other")
            assert everything(tmp_path / "other") == set()


def rewrite_sizes(parts: Members) -> Members:
    for entry, content in parts:
        entry.size = len(content)
    return parts


class TestDamage:
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_changed_or_missing_bytes_are_seen(
        self, grown: StoredRun, tmp_path: Path, suffix: str
    ) -> None:
        export_run(grown, file := tmp_path / f"monday.{suffix}")
        whole, damaged, rng = file.read_bytes(), tmp_path / "damaged", random.Random(7)
        rows, survived = tables(grown), 0
        for _ in range(60):
            place = rng.randrange(len(whole))
            changed = bytes([whole[place] ^ (1 << rng.randrange(8))])
            cut = rng.random() < 0.3
            damaged.write_bytes(whole[:place] + (b"" if cut else changed + whole[place + 1 :]))
            try:
                back = import_run(damaged, tmp_path / "other")
            except (StoreBroken, UseError):
                assert everything(tmp_path / "other") == set()
            else:  # a byte that says nothing, such as the time of a file
                assert tables(back) == rows
                check_whole(back)
                remove_run(tmp_path / "other", back.name)
                survived += 1
        assert survived < 30

    def test_format_of_another_version_is_named(self, grown: StoredRun, tmp_path: Path) -> None:
        export_run(grown, file := tmp_path / "monday.tar")
        parts = members(file)
        older = parts[1][1].replace(b"vizpub.store/", b"vizpub.store/1")
        facts = [len(older), crc32(older)]
        parts = listing(parts, lambda of: of["files"].update({FILE: facts}))
        parts[1] = (parts[1][0], older)
        with pytest.raises(StoreBroken, match=naming(file.parent / "older.tar", "another version")):
            import_run(rewritten(tmp_path / "older.tar", parts), tmp_path / "other")
        assert everything(tmp_path / "other") == set()

    @pytest.mark.parametrize("replaces", [False, True])
    def test_full_disk_leaves_all_as_it_was(
        self,
        collected: Reserved,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        replaces: bool,
    ) -> None:
        export_run(open_run(tmp_path / "ws", "lab"), file := tmp_path / "lab.tar", with_log=True)
        if replaces:
            ingest(tmp_path / "other", wanted(SECOND, run="lab"))
        before, count = state(tmp_path / "other"), len(members(file))
        create = archive.new_file
        for last in range(count):
            left = last

            def creating(path: Path) -> int:
                nonlocal left
                left -= 1
                if left < 0:
                    raise OSError(ENOSPC, os.strerror(ENOSPC), str(path))
                return create(path)

            monkeypatch.setattr(archive, "new_file", creating)
            if last < count - 2:
                with pytest.raises(DiskFull):
                    import_run(file, tmp_path / "other", replaces=replaces)
                assert state(tmp_path / "other") == before
                assert not [*(tmp_path / "other").glob("collected/.*")]
            else:
                import_run(file, tmp_path / "other", replaces=True)
                return


class TestAfterTheCommit:
    """The run is whole from then on, whatever becomes of its log.jsonl."""

    @pytest.fixture
    def file(self, collected: Reserved, tmp_path: Path) -> Path:
        run = open_run(tmp_path / "ws", "lab")
        (run.directory / JOURNAL).write_text('{"what": "ingest"}\n')
        export_run(run, file := tmp_path / "lab.tar", with_log=True)
        return file

    @pytest.mark.parametrize("replaces", [False, True])
    @pytest.mark.parametrize("at", [FILE, JOURNAL])
    def test_interrupted_import_leaves_all(
        self, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, replaces: bool
    ) -> None:
        if replaces:
            ingest(tmp_path / "other", wanted(SECOND, run="lab"))
        with monkeypatch.context() as patch:
            if at == FILE:
                patch.setattr(writer, "write_manifest", interrupted(writer.write_manifest))
            else:
                patch.setattr(Path, "write_bytes", failing_for(at, KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                import_run(file, tmp_path / "other", replaces=replaces)
        run = open_run(tmp_path / "ws", "lab")
        assert check_cut(tmp_path / "other", run, None, complete=True)

    def test_log_that_cannot_be_written_fails_no_import(
        self, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        full = OSError(ENOSPC, os.strerror(ENOSPC))
        monkeypatch.setattr(Path, "write_bytes", failing_for(JOURNAL, full))
        check_whole(import_run(file, tmp_path / "other"))


def interrupted(function: Callable[..., None]) -> Callable[..., None]:
    """A function after which Ctrl-C comes."""

    def call(*arguments: object) -> None:
        function(*arguments)
        raise KeyboardInterrupt

    return call


def failing_for(name: str, error: BaseException) -> Callable[[Path, bytes], int]:
    """Path.write_bytes that cannot write files of this name."""
    write = Path.write_bytes

    def writing(path: Path, content: bytes) -> int:
        if path.name == name:
            raise error
        return write(path, content)

    return writing


class TestCuts:
    @pytest.mark.parametrize(
        ("replaces", "step"),
        [(False, 9), *(pytest.param(one, 1, marks=pytest.mark.long) for one in (False, True))],
    )
    def test_import_that_was_cut_at_an_operation_left_nothing_or_all(
        self,
        collected: Reserved,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        replaces: bool,
        step: int,
    ) -> None:
        """By a kill, or by a power cut that loses a part of what was not synced."""
        run = open_run(tmp_path / "ws", "lab")
        export_run(run, file := tmp_path / "lab.tar", with_log=True)
        recorded = tmp_path / "recorded"
        recorder, older, folder = Recorder(recorded), None, recorded / "ws"
        recorded.mkdir()
        with recorder.recording():
            if replaces:
                ingest(folder, wanted(SECOND, run="lab"))
                older = tables(open_run(folder, "lab"))
            first = len(recorder.operations)
            import_run(file, folder, replaces=replaces)
        for name in ("sync_file", "sync_directory"):
            monkeypatch.setattr(durable, name, lambda path: None)
        disk, rng, left = Disk(), random.Random(3), tmp_path / "left"
        seen = set()
        for place, operation in enumerate(recorder.operations, start=1):
            disk.do(operation)
            is_last = place == len(recorder.operations)
            if place < first or (place % step and not is_last):
                continue
            for cut in (False, True):
                if cut:
                    disk.cut(left, rng, share=rng.choice([0, 0.5, 0.9]))
                else:
                    disk.leave(left)
                sweep(left / "ws")
                seen.add(check_cut(left / "ws", run, older, complete=is_last))
        assert seen == {False, True}


def check_cut(
    left: Path, run: StoredRun, older: dict[str, pa.Table] | None, *, complete: bool
) -> bool:
    """That a workspace has the imported run and its collection, or neither; returns which."""
    of = Collected(left, "lab")
    names = run_names(left)
    is_imported = bool(names) and bool(read_manifest(left / "runs/lab").collection)
    assert [path.name for path in left.glob("collected/*")] == ["lab"] * is_imported
    assert not [*left.glob("collected/.*")]
    if is_imported:
        back = open_run(left, "lab")
        assert tables(back) == tables(run)
        assert not any(damages(back.directory, back.manifest))
        assert of.owns(back.manifest)
        assert everything(of.folder) == {
            "identity", "options.json", "tokens/report", "batches/1",
            f"log/{0:020}.log.gz", f"log/{6:020}.log",
        }  # fmt: skip
    elif older is not None:
        assert tables(open_run(left, "lab")) == older
    else:
        assert not complete
        assert names == []
    return is_imported
