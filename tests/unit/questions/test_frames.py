"""Frames go to pandas, to Arrow and into a notebook unharmed."""

from __future__ import annotations

from html.parser import HTMLParser

import duckdb
import pandas as pd
import polars
import pyarrow as pa
import pytest

from vizpub.model.clock import OPEN
from vizpub.questions.frames import Frame, html_table

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></tr></table><b>",
    "&lt;b&gt; & 日本",
    "'`\"\n\x00\x1b[31m",
    "x" * 10_000,
]


class Table(HTMLParser):
    """The tags of a page, and the texts of its cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[object] = []
        self.cells: dict[str, list[str]] = {"caption": [], "th": [], "td": []}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag in self.cells:
            self.cells[tag].append("")
            self.now = tag

    def handle_data(self, data: str) -> None:
        self.cells[self.now][-1] += data


@pytest.fixture
def frame() -> Frame:
    columns = {
        "valid_to": pa.array([1, None, OPEN]),
        "share": [0.5, None, 1 / 3],
        "name": HOSTILE[:3],
    }
    return Frame("monday, links", pa.table(columns))


def test_frame_repr_names_content_rows_and_columns(frame: Frame) -> None:
    assert repr(frame) == "<monday, links: 3 rows of valid_to, share, name>"
    assert len(frame) == 3
    assert frame.columns == frame._ipython_key_completions_() == ["valid_to", "share", "name"]
    assert frame["share"].to_pylist()[:2] == [0.5, None]


def test_frame_is_taken_as_an_arrow_table(frame: Frame) -> None:
    assert pa.table(frame).equals(frame.to_arrow())
    wanted = pa.schema(
        [("valid_to", pa.int64()), ("share", pa.float64()), ("name", pa.large_string())]
    )
    cast = pa.table(frame, schema=wanted)
    assert cast.schema == wanted
    assert cast["name"].to_pylist() == HOSTILE[:3]


def test_pandas_frame_keeps_integers_and_nulls(frame: Frame) -> None:
    found = frame.to_pandas()
    assert found["valid_to"].dtype == pd.Int64Dtype()
    assert found["valid_to"][2] == OPEN
    assert found["valid_to"][1] is pd.NA
    assert found["share"].dtype == "float64"
    assert found["name"].tolist() == HOSTILE[:3]


def test_html_shows_the_first_rows_and_the_row_count() -> None:
    rows = pa.table({f"c{i}": range(1234) for i in range(25)})
    page = Table(Frame("run", rows)._repr_html_())
    assert page.cells["caption"] == [
        "run: 1,234 rows of 25 columns, the first 10 rows, the first 20 columns"
    ]
    assert page.cells["th"] == [f"c{i}" for i in range(20)]
    assert page.cells["td"] == [str(row) for row in range(10) for _ in range(20)]


def test_empty_frame_has_html_with_its_header(frame: Frame) -> None:
    page = Table(Frame("none", frame.rows.slice(0, 0))._repr_html_())
    assert page.cells == {"caption": ["none: 0 rows of 3 columns"], "th": frame.columns, "td": []}


def test_hostile_text_in_html_stays_text() -> None:
    rows = pa.table(dict.fromkeys(HOSTILE, HOSTILE))
    page = Table(Frame(HOSTILE[0], rows)._repr_html_())
    assert page.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert page.attributes == []
    short = [text if len(text) <= 60 else text[:59] + "…" for text in HOSTILE]
    assert page.cells["th"] == short
    assert page.cells["td"] == [text for text in short for _ in HOSTILE]
    assert page.cells["caption"][0].startswith(HOSTILE[0])


def test_html_cells_show_dash_for_unknown_and_open_ends() -> None:
    page = Table(html_table("", ["a"], [[None], [0], [1 / 3], [True], [[None, 2]], [OPEN]]))
    assert page.cells["td"] == ["–", "0", "0.333333", "True", "[None, 2]", "open"]


def test_html_cells_are_cut_at_the_given_length() -> None:
    page = Table(html_table("", ["x" * 99], [["y" * 200]], longest=100))
    assert page.cells["th"] + page.cells["td"] == ["x" * 99, "y" * 99 + "…"]


def place(values: pa.ChunkedArray | pa.Array) -> int:
    """The address of the numbers."""
    (chunk,) = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return int(chunk.buffers()[1].address)


def test_frame_is_read_by_arrow_readers_without_a_copy(frame: Frame) -> None:
    table = pa.table(frame)
    assert table.equals(frame.to_arrow())
    assert place(table["share"]) == place(frame["share"])
    assert duckdb.sql("SELECT count(*), count(share) FROM frame").fetchall() == [(3, 2)]
    assert duckdb.sql("FROM frame").to_arrow_table().to_pylist() == frame.to_pylist()


def test_frame_is_read_by_polars_without_a_copy_of_numbers(frame: Frame) -> None:
    read = polars.DataFrame(frame)
    assert read.to_dicts() == frame.to_pylist()
    for column in ("valid_to", "share"):
        assert place(read[column].to_arrow()) == place(frame[column])


def test_frame_is_copied_for_pandas(frame: Frame) -> None:
    """As docs/python.md says: its blocks are not Arrow's."""
    read = frame.to_pandas()
    assert read["share"].to_numpy().ctypes.data != place(frame["share"])
    assert read.astype(object).where(read.notna(), None).to_dict("records") == frame.to_pylist()
