"""What a figure of survival draws, read back from the figure."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from tests.support.words import naming
from vizpub.analytics.figures import save, survival
from vizpub.analytics.figures.canvas import NOTHING_TO_PLOT
from vizpub.model.errors import UseError

CURVES = pa.table(
    {
        "line": ["mesh", "mesh", "mesh", "presence"],
        "length": [1.0, 2.5, 4.0, 6.0],
        "ended": [2, 1, 0, 0],
        "open": [0, 3, 4, 1],
        "survival": [0.8, 0.7, 0.7, 1.0],
    }
)


def test_curve_begins_at_one_and_steps_down_at_each_length() -> None:
    (panel,) = survival(CURVES, by="line").axes
    mesh, mesh_open, presence, presence_open = panel.lines
    assert [*zip(*mesh.get_data(), strict=True)] == [(0, 1), (1, 0.8), (2.5, 0.7), (4, 0.7)]
    assert mesh.get_drawstyle() == "steps-post"
    assert [*zip(*mesh_open.get_data(), strict=True)] == [(2.5, 0.7), (4, 0.7)]
    assert [*zip(*presence.get_data(), strict=True)] == [(0, 1), (6, 1)]
    assert [*zip(*presence_open.get_data(), strict=True)] == [(6, 1)]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == [
        "mesh (10)", "presence (1)",
    ]  # fmt: skip


def test_single_curve_has_no_legend() -> None:
    (panel,) = survival(CURVES.slice(0, 3)).axes
    assert panel.get_legend() is None
    assert panel.get_xlabel() == "length in intervals"


def test_table_without_rows_is_refused() -> None:
    with pytest.raises(UseError, match=naming(NOTHING_TO_PLOT)):
        survival(CURVES.slice(0, 0))


def test_same_curves_give_the_same_file() -> None:
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        save(survival(CURVES, "monday", by="line"), file, "svg")
    assert files[0].getvalue() == files[1].getvalue()
