"""What an input is found to be, on real files and in real Spark tasks."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
import zipfile
from errno import EACCES, EIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.permissions import as_a_user
from tests.support.words import naming, tells, unknown
from vizpub.ingest.inputs.files import CHANGED, NO_FILES_IN, NO_SUCH_PATH, UNREADABLE, find_files
from vizpub.ingest.inputs.inventory import (
    NO_SOURCE,
    NOTHING,
    SEVERAL_SOURCES,
    check_options,
    take_inventory,
)
from vizpub.ingest.sources.base import Source, SourceOptions
from vizpub.ingest.sources.deliveries import Deliveries
from vizpub.ingest.sources.edges.source import Edges
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.reports.source import Reports
from vizpub.model.errors import InputError, UnknownName, UseError

pytestmark = pytest.mark.spark


class Words:
    """A source that recognises files by their first word; the second is the encoding."""

    joins: frozenset[str] = frozenset()
    appendable = True
    vague = frozenset({"noise"})
    companions: frozenset[str] = frozenset()

    def __init__(self, name: str) -> None:
        self.name = name

    def recognises(self, path: str, head: bytes) -> str | None:
        first, _, rest = head.partition(b" ")
        return rest.split(b"\n")[0].decode() if first.decode() in (self.name, "both") else None

    def near_miss(self, path: str, head: bytes) -> str | None:
        return None


ALL: list[Source] = [Reports(), Libp2p(), Deliveries(), Edges()]
SOURCES = (Words("red"), Words("blue"))
EDGES = b"src,dst\n1,2\n"
EXAMPLE = "for example: vizpub ingest"


@pytest.fixture
def look(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)

    def look(*paths: str, source: str = "auto"):  # type: ignore[no-untyped-def]
        return take_inventory(spark, find_files(paths), SOURCES, source)  # type: ignore[arg-type]

    return look


def put(path: str, content: bytes = b"red text\n") -> Path:
    file = Path(path).absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def test_folder_is_read_recursively_and_foreign_files_are_skipped(look) -> None:  # type: ignore[no-untyped-def]
    sound = put("in/a b.txt")
    deep = put("in/deep/er/b.gz", gzip.compress(b"red text\n" + os.urandom(300_000)))
    broken = put("in/c.gz", gzip.compress(b"red text\n" + os.urandom(300_000))[:-50_000])
    put("in/README", b"about\n")
    put("in/empty", b"")
    put("in/.unfinished")
    put("in/packed", gzip.compress(b"red text\n"))
    put("in/plain.gz")
    put("in/plain.zst")
    put("in/lost.gz", gzip.compress(b"red text\n")[:12])
    found = look("in")
    assert found.source == "red"
    assert [(file.path, file.encoding) for file in found.files] == [
        (str(sound), "text"),
        (str(broken), "text"),
        (str(deep), "text"),
    ]
    for file in found.files:
        content = Path(file.path).read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert {Path(path).name: why for path, why in found.skipped} == {
        "README": "not recognised as red",
        "empty": "empty",
        ".unfinished": "hidden",
        "packed": "gzip content, but a name without .gz: rename it",
        "plain.gz": "named .gz, but no gzip content: rename it",
        "plain.zst": "named .zst, but no zstandard content: rename it",
        "lost.gz": "not recognised as red (truncated gzip)",
    }


def test_file_named_by_path_glob_and_uri_counts_once(look) -> None:  # type: ignore[no-untyped-def]
    first, second, odd = put("in/a.txt"), put("in/b.txt"), put("in/[x].txt")
    put("in/c.log", b"blue text\n")
    found = look("in/*.txt", "in/[x].txt", str(second), first.as_uri())
    assert [file.path for file in found.files] == [str(odd), str(first), str(second)]
    assert found.skipped == []


def test_equal_content_is_one_file(tmp_path: Path) -> None:
    first, second = put(str(tmp_path / "a.csv"), EDGES), put(str(tmp_path / "a (1).csv"), EDGES)
    other = put(str(tmp_path / "b.csv"), EDGES + b"3,4\n")
    for paths in ([tmp_path], [first, second, other]):
        found = take_inventory(None, find_files(map(str, paths)), ALL)
        assert [file.path for file in found.files] == [str(first), str(other)]
        assert found.skipped == [(str(second), f"a copy of {first}")]


def test_copy_of_reports_is_taken_as_each_report_counts_once(tmp_path: Path) -> None:
    for name in "ab":
        put(str(tmp_path / name), b'{"format": "vizpub.report/1", "peer": "a", "interval": 0}\n')
    assert len(take_inventory(None, find_files([str(tmp_path)]), ALL).files) == 2


@pytest.mark.parametrize("mode", ["w:", "w:gz"])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archive_is_no_file_of_lines(tmp_path: Path, mode: str, form: int) -> None:
    line = b'{"format": "vizpub.report/1", "peer": "a", "interval": 0}\n'
    packed = put(str(tmp_path / "in/a"), line * 20)
    archive = tmp_path / "in" / ("a.tar.gz" if mode == "w:gz" else "a.tar")
    with tarfile.open(archive, mode, format=form) as tar:  # type: ignore[call-overload]
        tar.add(packed, "\N{SNOWMAN}" * 50 if form == tarfile.PAX_FORMAT else "a")
    with zipfile.ZipFile(tmp_path / "in/a.zip", "w") as zipped:
        zipped.write(packed, "a")
    found = take_inventory(None, find_files([str(tmp_path)]), ALL)
    assert [file.path for file in found.files] == [str(packed)]
    assert [why for _, why in found.skipped] == [
        "is a tar archive: unpack it",
        "is a zip archive: unpack it",
    ]
    with pytest.raises(InputError, match="is a tar archive: unpack it"):
        take_inventory(None, find_files([str(archive)]), ALL)


def test_source_given_by_name_skips_files_of_others(look) -> None:  # type: ignore[no-untyped-def]
    put("in/a.txt")
    blue = put("in/b.txt", b"blue text\n")
    found = look("in", source="blue")
    assert [file.path for file in found.files] == [str(blue)]
    assert [why for _, why in found.skipped] == ["not recognised as blue"]


def test_links_join_deliveries_unless_they_only_look_like_links(tmp_path: Path) -> None:
    deliveries = put(str(tmp_path / "a.csv"), b"msg,node,prev_node,t_us\n0,1,1,0\n")
    links = put(str(tmp_path / "b.csv"), b"src,dst\n1,2\n")
    numbers = put(str(tmp_path / "c.txt"), b"0 1\n1 2\n")

    def look(*paths: Path, source: str = "auto") -> tuple[str, list[str]]:
        found = take_inventory(None, find_files(map(str, paths)), ALL, source)
        return found.source, [Path(file.path).name for file in found.files]

    assert look(deliveries) == ("deliveries", ["a.csv"])
    assert look(links, numbers) == ("edges", ["b.csv", "c.txt"])
    assert look(numbers) == ("edges", ["c.txt"])
    assert look(tmp_path) == ("deliveries", ["a.csv", "b.csv"])
    assert look(deliveries, links, numbers) == ("deliveries", ["a.csv", "b.csv", "c.txt"])
    assert look(deliveries, numbers) == ("deliveries", ["a.csv", "c.txt"])
    assert look(tmp_path, source="edges") == ("edges", ["b.csv"])
    deliveries.unlink()
    links.unlink()
    assert look(tmp_path) == ("edges", ["c.txt"])


def test_long_first_line_hides_no_file(tmp_path: Path) -> None:
    peers = [f"peer {number}" for number in range(8_000)]
    report = {"format": "vizpub.report/1", "peer": "a", "interval": 0, "neighbors": peers}
    line = json.dumps(report).encode() + b"\n"
    assert len(line) > 1 << 16
    short = b'{"format": "vizpub.report/1", "peer": "b", "interval": 0}\n'
    whole = {"a": line + short, "b.gz": gzip.compress(line), "c": line.strip(), "d": short + line}
    for name, content in whole.items():
        put(str(tmp_path / name), content)
    found = take_inventory(None, find_files([str(tmp_path)]), ALL)
    assert [Path(file.path).name for file in found.files] == list(whole)
    with pytest.raises(InputError, match="no source recognises"):
        take_inventory(None, find_files([str(tmp_path / "a")]), ALL, max_line=100)


def test_folder_of_mixed_encodings_is_refused_unless_files_named(look) -> None:  # type: ignore[no-untyped-def]
    put("in/a.txt")
    put("in/a.bin", b"red binary\n")
    with pytest.raises(
        InputError, match=naming("in", "binary and text", "binary: a.bin; text: a.txt")
    ) as told:
        look("in")
    assert told.value.hint.endswith(f"{EXAMPLE} in/a.bin")
    assert len(look("in/a.txt", "in/a.bin").files) == 2


def test_refusal_of_mixed_encodings_suggests_a_folder_of_one(look) -> None:  # type: ignore[no-untyped-def]
    for peer in "abc":
        put(f"in/plain/{peer}.txt")
        put(f"in/packed/deep/{peer}.bin", b"red binary\n")
    with pytest.raises(
        InputError, match=naming("binary: packed/deep/a.bin", "text: plain/a.txt")
    ) as told:
        look("in")
    assert told.value.hint.endswith(f"{EXAMPLE} in/packed/deep")
    put("in/packed/deep/d.txt")
    with pytest.raises(InputError) as told:
        look(str(Path("in").absolute()))
    assert told.value.hint.endswith(f"{EXAMPLE} in/plain")


def test_csv_files_of_differing_columns_are_of_one_encoding(look) -> None:  # type: ignore[no-untyped-def]
    put("in/a.csv", b"red csv(src,dst)\n")
    put("in/b.csv", b"red csv(src,dst,layer)\n")
    assert len(look("in").files) == 2
    put("in/c.parquet", b"red parquet(src,dst)\n")
    with pytest.raises(InputError, match=naming("csv and parquet", "csv: a.csv, b.csv; parquet")):
        look("in")


@pytest.mark.parametrize(
    ("options", "refused_by"),
    [
        (SourceOptions(), []),
        (SourceOptions(interval_us=5), []),
        (SourceOptions(gap_tolerance=1), ["libp2p", "deliveries", "edges"]),
        (SourceOptions(only="x"), ["libp2p", "deliveries", "edges"]),
        (SourceOptions(reporters_only=True), ["deliveries", "edges"]),
    ],
)
def test_option_without_meaning_for_the_source_is_refused(
    options: SourceOptions, refused_by: list[str]
) -> None:
    refused = []
    for source in ALL:
        try:
            check_options(source, options)
        except UseError:
            refused.append(source.name)
    assert refused == refused_by


def test_refused_option_is_named_as_on_the_command_line() -> None:
    with pytest.raises(UseError, match=naming("--gap-tolerance", "'edges'")):
        check_options(Edges(), SourceOptions(gap_tolerance=2))


@pytest.mark.parametrize(
    ("path", "content", "source", "message"),
    [
        ("nowhere", None, "auto", f"{NO_SUCH_PATH}: nowhere"),
        ("no*where", None, "auto", rf"{NO_SUCH_PATH}: no\*where"),
        ("in", None, "auto", f"in {NO_FILES_IN}"),
        ("in/x", b"green\n", "auto", f"{NO_SOURCE} .*/in/x"),
        ("in/x", b"", "auto", rf"{NO_SOURCE} .*/in/x \(empty\)"),
        ("in/x", b"green\n", "red", "/in/x: .* red"),
        ("in/x", b"", "red", "/in/x: empty"),
        ("in", b"green\n", "red", f"{NOTHING} in"),
        ("in", b"both text\n", "auto", f"{SEVERAL_SOURCES}: blue.*/x; red"),
    ],
)
def test_input_without_a_matching_source_is_refused_with_hint(  # type: ignore[no-untyped-def]
    look, path: str, content: bytes | None, source: str, message: str
) -> None:
    Path("in").mkdir()
    if content is not None:
        put("in/x", content)
    with pytest.raises(InputError, match=message) as told:
        look(path, source=source)
    assert told.value.hint
    assert told.value.exit_code == 2


PERMISSION = f"{UNREADABLE}: {os.strerror(EACCES)}"


def test_unreadable_file_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put("in/a.txt")
    put("in/b.txt").chmod(0)
    with as_a_user():
        found = take_inventory(None, find_files(["in"]), SOURCES)  # type: ignore[arg-type]
    assert found.skipped == [(str(Path("in/b.txt").absolute()), PERMISSION)]


@pytest.mark.parametrize("path", ["in/b.txt", "in"])
@pytest.mark.parametrize("source", ["auto", "red"])
def test_input_that_cannot_be_read_is_no_input_of_another_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    put("in/b.txt").chmod(0)
    with as_a_user(), pytest.raises(InputError) as told:
        take_inventory(None, find_files([path]), SOURCES, source)  # type: ignore[arg-type]
    tells(str(told.value), f"{tmp_path}/in/b.txt: {PERMISSION}")
    assert NO_SOURCE not in str(told.value)
    assert told.value.exit_code == 2


def test_unreadable_file_is_told_before_files_of_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put("in/a.txt", b"green\n")
    put("in/b.txt").chmod(0)
    with as_a_user(), pytest.raises(InputError, match=naming("in/b.txt", PERMISSION)):
        take_inventory(None, find_files(["in"]), SOURCES)  # type: ignore[arg-type]


def test_error_of_a_device_is_told_with_the_reason() -> None:
    """Nothing is mapped at the beginning of a process' memory."""
    with pytest.raises(InputError, match=f"/mem: {UNREADABLE}: {os.strerror(EIO)}"):
        take_inventory(None, find_files(["/proc/self/mem"]), SOURCES)  # type: ignore[arg-type]


class Growing(Words):
    """Whenever it is asked for a file, somebody has written to that."""

    def recognises(self, path: str, head: bytes) -> str | None:
        with open(path, "ab") as file:
            file.write(b"more\n")
        return super().recognises(path, head)


def test_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    growing: list[Source] = [Growing("red")]  # type: ignore[list-item]
    file = put("in/a.txt")
    with pytest.raises(InputError, match=naming(f"a.txt {CHANGED}", 9, 14)):
        take_inventory(None, find_files(["in"]), growing)
    put("in/log", b"of nobody\n")
    file.unlink()
    put("in/b.txt", b"blue text\n")
    with pytest.raises(InputError, match=NO_SOURCE):
        take_inventory(None, find_files(["in"]), growing)


def test_unknown_source_is_refused_with_a_similar_name(look) -> None:  # type: ignore[no-untyped-def]
    put("in/a.txt")
    with pytest.raises(UnknownName, match=unknown("source", "rde", "red")):
        look("in", source="rde")


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("reports", b'{"format": "vizpub.run/1"}\n'),
        ("libp2p", b'{"type":9,"peerID":"ACQI","timestamp":9,"join":{"topic":"news"}}\n'),
        ("edges", b"interval,src,dst\n1,a,b\n"),
        ("edges", b"src,dst\na,b\n"),
        ("edges", b"# Nodes: 3\n1 2\n1 3\n"),
        ("deliveries", b"msg,node,prev_node,t_us\n0,11,11,0\n"),
        (None, b"# about this folder\n"),
        (None, b"[" * 60_000),
        (None, b'{"type":' * 7_000),
    ],
)
def test_sources_never_recognise_the_same_file(name: str | None, head: bytes) -> None:
    assert [source.name for source in ALL if source.recognises("x", head)] == [name][: bool(name)]
