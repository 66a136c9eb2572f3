"""Styles of figures: fonts, sizes, colours and texts, read back from the files."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from PIL import Image

from tests.support.words import unknown
from vizpub.analytics.comparison.metrics import Metric
from vizpub.analytics.comparison.tables import RunMetrics, compare_groups, compare_series
from vizpub.analytics.figures import (
    PALETTE,
    FigureOptions,
    colours_of,
    distribution,
    figure_style,
    relabel,
    save,
    series,
)
from vizpub.analytics.figures.comparison import comparison, comparison_series
from vizpub.analytics.options import STYLES
from vizpub.model.errors import UnknownName

HITS = Metric("hit_ratio", "share", "pooled over messages", "")


def of_runs(*names: str) -> pa.Table:
    """Three intervals of each run."""
    return pa.table(
        {
            "run": [name for name in names for _ in range(3)],
            "interval": pa.array([0, 1, 2] * len(names), pa.int32()),
            "hit_ratio": [0.5 + 0.1 * i for i in range(3 * len(names))],
        }
    )


def written(figure: Figure, form: str) -> bytes:
    save(figure, out := io.BytesIO(), form)
    return out.getvalue()


@pytest.mark.parametrize("style", [None, *STYLES])
def test_pdf_has_truetype_fonts_alone_and_svg_its_text_as_text(style: str | None) -> None:
    with figure_style(FigureOptions(style)):
        figure = series(of_runs("a"), ["hit_ratio"], "Title of a run")
        pdf, svg = written(figure, "pdf"), written(figure, "svg")
    assert set(re.findall(rb"/Subtype /(Type[0-9]|TrueType)", pdf)) == {b"Type0"}
    assert b"/CIDFontType2" in pdf
    assert b"/FontFile2" in pdf
    texts = {node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")}
    assert {"hit ratio", "interval", "Title of a run"} <= texts


def test_size_is_that_of_the_options_or_the_style_in_inches_and_pixels() -> None:
    sizes = {}
    for options in (
        FigureOptions("paper"),
        FigureOptions("slides"),
        FigureOptions(width=3.5, height=2.5),
        FigureOptions("paper", width=5),
    ):
        with figure_style(options):
            figure = series(of_runs("a"), ["hit_ratio"])
            with Image.open(io.BytesIO(written(figure, "png"))) as image:
                sizes[options] = image.width
            if options.height:
                assert figure.get_figheight() == options.height
    assert list(sizes.values()) == [1050, 1500, 525, 1500]


def test_dark_style_has_light_text_on_a_dark_ground_and_no_black() -> None:
    with figure_style(FigureOptions("dark")):
        figure = series(of_runs(*"abcdefg"), ["hit_ratio"], "t", by="run")
        with Image.open(io.BytesIO(written(figure, "png"))) as image:
            assert max(image.convert("RGB").getpixel((2, 2))) < 50  # type: ignore[arg-type]
        assert PALETTE[-1] not in {line.get_color() for line in figure.axes[0].lines}
    assert series(of_runs("a"), ["hit_ratio"]).get_facecolor()[:3] == (1, 1, 1)


def test_title_axes_and_legend_are_those_that_are_given() -> None:
    with figure_style(FigureOptions(title="$ours")):
        figure = series(of_runs("a", "b"), ["hit_ratio"], "default", by="run")
        relabel(figure, "time (s)", "hits", "outside")
    assert figure.get_suptitle() == r"\$ours"
    (panel,) = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("time (s)", "hits")
    assert panel.get_legend() is None
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    relabel(figure, None, None, "none")
    assert figure.legends == []
    with figure_style(FigureOptions(title="")):
        assert series(of_runs("a"), ["hit_ratio"], "default").get_suptitle() == ""


def test_unknown_style_is_refused_with_the_styles_that_there_are() -> None:
    with pytest.raises(UnknownName, match=unknown("style of figures", "print")):
        FigureOptions("print")


def test_system_has_one_colour_in_all_figures() -> None:
    """In series, distributions and comparisons, whichever systems are drawn beside it."""
    table = of_runs("p", "s")
    chosen = colours_of(["p", "s"], of=["poldercast", "scribe"])
    of_series = {line.get_label(): line.get_color() for line in
                 series(table, ["hit_ratio"], by="run", chosen=chosen).axes[0].lines}  # fmt: skip
    drawn = distribution(table, ["hit_ratio"], by="run", chosen=chosen).axes[0].lines
    assert [line.get_color() for line in drawn] == list(of_series.values())
    for groups in (["poldercast", "scribe"], ["scribe", "hyparview", "poldercast"], ["poldercast"]):
        runs = [RunMetrics(f"{g}{s}", g, s, {"hit_ratio": 0.5 + s / 9}, {"hit_ratio": [0.5, 0.6]})
                for g in groups for s in (1, 2)]  # fmt: skip
        means = comparison(compare_groups(runs, [HITS]))
        over_time = comparison_series(compare_series(runs, [HITS], 0))
        for figure in (means, over_time):
            shown = dict(zip(groups, figure.legends[0].get_lines(), strict=False))
            assert shown["poldercast"].get_color() == of_series["p"]
            if "scribe" in shown:
                assert shown["scribe"].get_color() == of_series["s"]


def test_systems_of_an_experiment_keep_their_colours_where_only_some_are_drawn() -> None:
    systems = ["ours", "theirs", "Scribe"]
    every = colours_of(["ours", "theirs", "Scribe"], systems)
    assert len(set(every.values())) == 3
    assert colours_of(["theirs, churn"], systems) == {"theirs, churn": every["theirs"]}
    two = colours_of(["ours, still", "ours, churn", "theirs"], systems)
    assert two["ours, still"] == every["ours"]
    assert two["ours, churn"] not in every.values()
    assert two["theirs"] == every["theirs"]
