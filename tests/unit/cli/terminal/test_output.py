"""Rows in five formats, to stdout or to a file."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.words import naming, unknown
from vizpub.cli.completion import FORMATS
from vizpub.cli.options import Output
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, output_format, replaced_file, show_rows
from vizpub.model.clock import OPEN
from vizpub.model.errors import UnknownName, UseError

COLUMNS = ("peer", "topics", "valid_to", "share", "note")
VALUES = [
    ("alice", ["a", "b"], OPEN, 0.5, None),
    ("\x1b[31m日本|x\n", [], 7, math.nan, 'say "hi", all'),
]
SETTINGS = Settings()


def rows() -> OutputRows:
    return OutputRows(COLUMNS, iter(VALUES))


def written(form: str, tmp_path: Path, of: OutputRows | None = None) -> str:
    path = tmp_path / "out"
    show_rows(of or rows(), Output(form, path), SETTINGS)
    return path.read_text("utf-8")


def test_json_is_one_array_with_null_for_unknown_values(tmp_path: Path) -> None:
    found = json.loads(written("json", tmp_path))
    assert found[0] == {
        "peer": "alice", "topics": ["a", "b"], "valid_to": OPEN, "share": 0.5, "note": None,
    }  # fmt: skip
    assert found[1]["share"] is None
    assert found[1]["peer"] == VALUES[1][0]
    assert json.loads(written("json", tmp_path, OutputRows(COLUMNS, []))) == []


def test_json_lines_are_the_same_objects_as_json(tmp_path: Path) -> None:
    objects = [json.loads(line) for line in written("jsonl", tmp_path).splitlines()]
    assert objects == json.loads(written("json", tmp_path))
    assert written("jsonl", tmp_path, OutputRows(COLUMNS, [])) == ""


def test_csv_reads_back_in_full(tmp_path: Path) -> None:
    found = list(csv.reader(io.StringIO(written("csv", tmp_path), newline="")))
    assert found[0] == list(COLUMNS)
    assert found[1] == ["alice", '["a", "b"]', str(OPEN), "0.5", ""]
    assert found[2] == [VALUES[1][0], "[]", "7", "", 'say "hi", all']


def test_markdown_escapes_text_that_would_break_its_columns(tmp_path: Path) -> None:
    lines = written("md", tmp_path).splitlines()
    assert lines[0] == "| peer | topics | valid_to | share | note |"
    assert lines[1] == "| --- | --- | --- | --- | --- |"
    assert lines[3].startswith("| \\x1b[31m日本\\|x\\n | ")
    assert len(lines) == 4


def test_table_format_escapes_control_characters_and_shows_open_ends(tmp_path: Path) -> None:
    text = written("table", tmp_path)
    assert "\x1b" not in text
    assert "open" in text


def test_data_goes_to_stdout_and_notes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(rows(), Output("csv"), SETTINGS)
    show_rows(OutputRows(("a",), []), Output(), SETTINGS)
    out, err = capsys.readouterr()
    assert out.startswith("peer,topics")
    assert out.endswith("a\n─\n")
    assert err == "(no rows)\n"


def test_quiet_output_to_a_file_prints_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_rows(rows(), Output(None, tmp_path / "x.json"), Settings(quiet=True))
    assert capsys.readouterr() == ("", "")


def test_columns_without_room_are_counted_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    show_rows(OutputRows(tuple(f"metric_{i}" for i in range(9)), [range(9)]), Output(), SETTINGS)
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "metric_0  metric_1"
    assert " ".join(err.split()) == (
        "(no room for 7 more columns: metric_2, metric_3, metric_4, …; --format csv shows all)"
    )
    assert max(map(len, err.splitlines())) <= 20


@pytest.mark.parametrize(
    ("file", "form"),
    [
        (None, "table"), ("-", "table"), ("a.json", "json"), ("a.JSONL", "jsonl"),
        ("a.ndjson", "jsonl"), ("a.csv", "csv"), ("a.md", "md"), ("a.txt", "table"),
    ],
)  # fmt: skip
def test_file_suffix_sets_the_format(file: str | None, form: str) -> None:
    path = None if file is None else Path(file)
    assert output_format(Output(None, path)) == form
    assert output_format(Output("md", path)) == "md"


def test_unknown_format_is_refused_with_a_hint() -> None:
    with pytest.raises(UseError, match=naming("a.xlsx", "--format")):
        output_format(Output(None, Path("a.xlsx")))
    with pytest.raises(UnknownName, match=naming(unknown("format", "jsn", "json"))) as error:
        output_format(Output("jsn"))
    assert error.value.existing == FORMATS


def test_arrow_batches_are_written_as_csv(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None, 3], "b": ["x", "y", None]})
    of = OutputRows.of_arrow(table.column_names, table.to_batches(2))
    assert written("csv", tmp_path, of) == "a,b\n1,x\n,y\n3,\n"


def test_single_row_is_upright_only_in_the_table_format() -> None:
    one = OutputRows.of_records([{"a": 1, "b": 2}])
    assert list(one.upright(Output()).values) == [("a", 1), ("b", 2)]
    assert one.upright(Output("json")) is one


def test_processes_and_memory_are_upright_as_people_read_them() -> None:
    one = OutputRows.of_records(
        [{"pid": 12116, "java": None, "memory": 1_107_304_448, "commands": 0}]
    )
    shown = [("pid", "12116"), ("java", None), ("memory", "1,107 MB"), ("commands", 0)]
    assert list(one.upright(Output()).values) == shown


def test_file_is_replaced_only_when_the_output_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError):
        show_rows(OutputRows(("a",), ([1 / n] for n in [1, 0])), Output("csv", path), SETTINGS)
    assert path.read_text() == "before"
    show_rows(OutputRows(("a",), [(1,)]), Output("csv", path), SETTINGS)
    assert path.read_text() == "a\n1\n"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_symbolic_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    show_rows(OutputRows(("a",), [(1,)]), Output(None, tmp_path / "link.csv"), SETTINGS)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "a\n1\n"


def test_named_pipe_is_written_in_place(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    assert output_format(Output(None, pipe)) == "table"
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text, "utf-8")
        show_rows(OutputRows(("a",), [(1,)]), Output("csv", pipe), SETTINGS)
    assert read.result() == "a\n1\n"
    assert pipe.is_fifo()
    with replaced_file(pipe) as place:
        assert place == pipe
    assert pipe.is_fifo()


@pytest.mark.parametrize("file", ["no/such/folder/x.csv", "."])
def test_unwritable_output_path_is_refused(tmp_path: Path, file: str) -> None:
    with pytest.raises(UseError, match=naming(tmp_path / file)):
        show_rows(rows(), Output("csv", tmp_path / file), SETTINGS)


@pytest.mark.parametrize("form", FORMATS)
def test_provisional_rows_are_marked_in_json_and_named_on_stderr(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "messages published after interval 6 are provisional"
    plain, marked = (written(form, tmp_path, replace(rows(), provisional=s)) for s in ("", said))
    assert capsys.readouterr().err.count(f"({said})") == 1
    assert (marked == plain) == (form not in ("json", "jsonl"))
    if form == "json":
        before = [{**row, "provisional": True} for row in json.loads(plain)]
        assert json.loads(marked) == before
