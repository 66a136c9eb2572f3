"""Options of `vizpub plot`: each applies to a kind of figure, and changes it, or is refused."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from tests.support import gallery
from tests.support.few import few
from tests.support.gallery import PAGE, PICTURES, drawn_in, runs_of
from tests.support.grouped import add_attributes, add_control
from tests.support.words import tells
from vizpub.analytics.options import STYLES
from vizpub.cli.commands.figures.drawing import APPLIES
from vizpub.cli.commands.figures.grouped import ARRIVALS_ALONE, CONTROL_SERIES
from vizpub.cli.commands.figures.pictures import ONE_SCALE, TWO_SCALES
from vizpub.cli.commands.figures.plot import (
    MESSAGES_OR_PART,
    TIMES_OR_WINDOW,
    TIMES_PEERS_OR_RUNS,
)
from vizpub.cli.completion import KINDS
from vizpub.cli.main import app
from vizpub.questions.run import Run
from vizpub.runstore.manifest import write_manifest
from vizpub.runstore.store import open_run

ROOT = Path(__file__).parents[5]
Call = Callable[..., Result]
METRIC_KINDS = ("series", "ecdf", "ccdf", "density")
ONE = {"tree": ["m0"]} | {kind: ["degree", "--peer", "alice"] for kind in METRIC_KINDS}
"""What a figure of the kind needs."""
VALUES: dict[str, tuple[str, str]] = {
    "--peer": ("alice", "dave"),
    "--topic": ("news", "sport/日本"),
    "--from": ("0", "2"),
    "--to": ("1", "2"),
    "--by": ("client", "country"),
    "--at": ("0", "3"),
    "--layers": ("mesh", "overlay"),
    "--layout": ("ring", "layers"),
    "--hops": ("1", "2"),
    "--fps": ("4", "8"),
    "--seconds": ("1", "2"),
    "--size": ("3.5in", "640x480"),
    "--with": ("other", "third"),
    "--title": ("one", "two"),
    "--xlabel": ("one", "two"),
    "--ylabel": ("one", "two"),
    "--legend": ("outside", "none"),
    "--style": ("paper", "dark"),
}
"""Two values of each option that give different figures."""
NEEDED = {(option, "series") for option in ("--peer", "--topic", "--by")}
"""Options without which their metric has no such figure."""
VALUES_OF = {
    ("METRIC|MESSAGE", "coverage"): ("m0", "m1"),
    ("METRIC|MESSAGE", "tree"): ("m0", "m1"),
    ("METRIC|MESSAGE", "overlay"): ("degree", "in_degree"),
    ("--layout", "overlay"): ("ring", "force"),
    ("--peer", "coverage"): ("alice", "bob"),
}


@pytest.fixture
def draw(workspace: Path, tmp_path: Path) -> Call:
    """Draw a figure of the run `monday`."""
    return drawing(workspace, tmp_path)


def drawing(workspace: Path, folder: Path) -> Call:
    def call(*words: str, file: str = "figure.svg") -> Result:
        path = str(folder / file)
        where = ["--workspace", str(workspace), "plot", "monday"]
        return CliRunner().invoke(app, [*where, *words, "-o", path])

    return call


@pytest.fixture(scope="module")
def figure(made_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Draw a figure of `monday`, once for all tests, and return its SVG; "" without data.

    The run has attributes, and there are runs of two other systems.
    """
    workspace = tmp_path_factory.mktemp("plot")
    shutil.copytree(made_once, workspace, symlinks=True, dirs_exist_ok=True)
    add_client_and_country(workspace)
    add_two_systems(workspace)
    draw = drawing(workspace, workspace)

    @cache
    def svg(*words: str) -> str:
        result = draw(*words)
        if result.exit_code == 2 and "nothing to plot" in result.stderr:
            return ""
        assert result.exit_code == 0, result.stderr
        return (workspace / "figure.svg").read_text("utf-8")

    return svg


@pytest.fixture
def attributes(workspace: Path) -> None:
    """Attributes of the peers of `monday`."""
    add_client_and_country(workspace)


def add_client_and_country(workspace: Path) -> None:
    add_attributes(workspace, "monday", client="ab a", country="xyxy")


@pytest.fixture
def two_more(workspace: Path) -> None:
    """Runs of two other systems."""
    add_two_systems(workspace)


def add_two_systems(workspace: Path) -> None:
    stored = open_run(workspace, "monday")
    for name, system in (("other", "scribe"), ("third", "gossip")):
        folder = workspace / "runs" / name
        shutil.copytree(stored.directory, folder)
        write_manifest(folder, replace(stored.manifest, name=name, protocol=system))


def subject(kind: str, option: str) -> list[str]:
    if kind in METRIC_KINDS and option == "--legend":
        return ["degree", "--peer", "alice", "--peer", "bob"]
    if option == "METRIC|MESSAGE":
        return []
    if kind in METRIC_KINDS and option == "--by":
        return ["degree"]
    if kind in METRIC_KINDS and option in ("--peer", "--topic"):
        return ["subscribers"] if option == "--topic" else ["degree"]
    return ["degree", "--peer", "alice"] if kind == "series" else ONE.get(kind, [])


def given(option: str, value: str) -> list[str]:
    return [value] if option == "METRIC|MESSAGE" else [option, value]


ALL = [(kind, option) for option in APPLIES if option != "--correct-clocks" for kind in KINDS]


def quick() -> Iterator[tuple[str, str]]:
    """Of each option, the first two kinds that take it, and the first that does not."""
    for option, kinds in APPLIES.items():
        yield from ((kind, option) for kind in [k for k in KINDS if k in kinds][:2])
        yield from ((kind, option) for kind in [k for k in KINDS if k not in kinds][:1])


@pytest.mark.parametrize(("kind", "option"), few(ALL, quick()))
def test_option_changes_the_figure_or_is_refused_with_the_kinds_that_it_applies_to(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, option: str
) -> None:
    of_metrics = ("network_size", "links") if kind == "series" else ("degree", "subscribers")
    values = VALUES_OF.get((option, kind), VALUES.get(option, of_metrics))
    words = [*subject(kind, option), "--kind", kind]
    if kind in APPLIES[option]:
        figure = request.getfixturevalue("figure")
        # The first is the figure without the option, where there is one: several options share it.
        changed = [[*words, *given(option, value)] for value in values]
        needed = option == "METRIC|MESSAGE" or (option, kind) in NEEDED
        first, *others = changed if needed else [words, *changed]
        assert any(figure(*other) != figure(*first) for other in others)
        return
    result = request.getfixturevalue("draw")(*words, *given(option, values[0]))
    assert result.exit_code == 2, result.output
    tells(result.stderr, option, f"--kind {kind}", *APPLIES[option])
    assert not list(tmp_path.glob("figure.*"))


@pytest.mark.parametrize("kind", ["overlay", "tree"])
@pytest.mark.parametrize(
    "option", ["--peer", "--at", "--hops", "--layers", "METRIC|MESSAGE", "--title"]
)
def test_option_of_a_still_figure_is_refused_for_a_film(draw: Call, kind: str, option: str) -> None:
    film = {"overlay": "film of an overlay", "tree": "film of a tree"}[kind]
    if film in APPLIES[option]:
        return
    value = VALUES.get(option, ("m0", ""))[0]
    result = draw(*ONE.get(kind, []), "--kind", kind, *given(option, value), file="film.gif")
    assert result.exit_code == 2, result.output
    tells(result.stderr, option, film, *APPLIES[option])


def test_times_and_a_window_or_messages_and_a_part_are_refused_together(draw: Call) -> None:
    both = draw("degree", "--kind", "ecdf", "--at", "1", "--from", "0")
    assert (both.exit_code, TIMES_OR_WINDOW in both.stderr) == (2, True)
    both = draw("m0", "--kind", "coverage", "--topic", "news")
    assert (both.exit_code, MESSAGES_OR_PART in both.stderr) == (2, True)


def test_layers_are_refused_where_no_metric_depends_on_them(draw: Call) -> None:
    for metric, fact in (("hit_ratio", "hit_ratio"), ("gauges/hops", "--layers")):
        result = draw(metric, "--layers", "mesh")
        assert result.exit_code == 2, metric
        tells(result.stderr, fact)
    assert draw("gauges/hops", "--topic", "news").exit_code == 2
    assert draw("delay_us", "--kind", "ecdf", "--layers", "mesh").exit_code == 2


def test_default_of_the_configuration_holds_only_for_kinds_that_it_applies_to(
    draw: Call, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "vizpub.toml").write_text('[plot]\nlayout = "layers"\n', "utf-8")
    assert draw("network_size").exit_code == 0
    assert draw("m0", "--kind", "tree").exit_code == 0
    layers = (tmp_path / "figure.svg").read_text("utf-8")
    assert draw("m0", "--kind", "tree", "--layout", "ring").exit_code == 0
    assert (tmp_path / "figure.svg").read_text("utf-8") != layers


def test_default_that_the_command_line_excludes_is_left_out(draw: Call, workspace: Path) -> None:
    (workspace / "vizpub.toml").write_text(
        '[plot]\nby = "client"\nat = "1"\nlayers = "mesh"\ncorrect-clocks = true\n', "utf-8"
    )
    for words in (
        ("degree", "--peer", "alice"),
        ("degree", "--kind", "ecdf", "--with", "monday", "--from", "0"),
        ("degree", "--kind", "overlay", "--at", "1"),
        ("gauges/hops", "--peer", "alice"),
        ("--kind", "survival", "--peer", "alice"),
    ):
        drawn = draw(*words)
        assert drawn.exit_code == 0, (words, drawn.output)
    assert draw("degree", "--by", "client", "--peer", "alice").exit_code == 2


def test_docs_have_the_table_of_options_and_kinds() -> None:
    page = (ROOT / "docs/figures.md").read_text("utf-8")
    (table,) = re.findall(r"\| option \| applies to \|\n.+\n((?:\|.+\n)+)", page)
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", table.replace("\\|", "|"), re.MULTILINE)
    assert {option: tuple(kinds.split(", ")) for option, kinds in rows} == APPLIES


@pytest.mark.usefixtures("attributes")
@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ("degree", {"a", "b", "unknown"}),
        ("subscribers --topic news", {"a", "b", "unknown"}),
        ("degree --kind ecdf", {"a", "b", "unknown"}),
        ("delay_us --kind ccdf", {"b", "unknown"}),
        ("hit_ratio --kind density", {"a"}),
    ],
)
def test_groups_of_peers_have_a_line_each(
    draw: Call, tmp_path: Path, words: str, groups: set[str]
) -> None:
    result = draw(*words.split(), "--by", "client")
    assert result.exit_code == 0, result.output
    svg = (tmp_path / "figure.svg").read_text("utf-8")
    with (tmp_path / "figure.csv").open(newline="") as file:
        assert {row["group"] for row in csv.DictReader(file)} == groups
    assert all(name in svg for name in groups)


def test_csv_of_an_overlay_has_the_numbers_of_its_peers(
    draw: Call, workspace: Path, tmp_path: Path
) -> None:
    run = Run.open(workspace, "monday")
    of_peer = {
        row["peer_name"]: row["degree"]
        for row in run.metrics("peers", ["degree"]).to_pylist()
        if row["interval"] == 1
    }

    def rows(*words: str) -> list[dict[str, str]]:
        assert draw(*words, "--kind", "overlay", "--at", "1").exit_code == 0
        return [*csv.DictReader((tmp_path / "figure.csv").read_text("utf-8").splitlines())]

    plain, found = rows(), rows("degree", "--peer", "alice")
    linked = [row for row in found if row["dst"]]
    assert [{name: row[name] for name in plain[0]} for row in linked] == plain
    for row in linked:
        for end in ("src", "dst"):
            assert float(row[f"{end}_degree"]) == of_peer[row[f"{end}_name"]]
            assert (row[f"{end}_hops"] == "0.0") == (row[f"{end}_name"] == "alice")
    alone = {row["src_name"]: row["src_degree"] for row in found if not row["dst"]}
    assert {*alone.values()} <= {"0.0"}
    ends = {row[f"{end}_name"] for row in linked for end in ("src", "dst")}
    assert {*alone}.isdisjoint(ends)
    assert {*alone} | ends >= {name for name, degree in of_peer.items() if degree is not None}


@pytest.mark.usefixtures("attributes")
def test_groups_of_an_overlay_have_a_colour_each(draw: Call, tmp_path: Path) -> None:
    assert draw("--kind", "overlay", "--by", "client", "--at", "0").exit_code == 0
    svg = (tmp_path / "figure.svg").read_text("utf-8")
    shown = {name for name in ("a", "b", "unknown", "peer") if re.search(rf">{name} \(\d+\)<", svg)}
    assert shown == {"a", "b", "unknown"}
    assert draw("--kind", "overlay", "--by", "clients", "--at", "0").exit_code == 2


@pytest.mark.usefixtures("attributes")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("degree --at 0,3", ONE_SCALE),
        ("degree --by client", ONE_SCALE),
        ("degree in_degree out_degree", TWO_SCALES),
        ("degree in_degree --peer alice", TWO_SCALES),
    ],
)
def test_overlay_shows_two_numbers_at_one_time(draw: Call, words: str, told: str) -> None:
    result = draw(*words.split(), "--kind", "overlay")
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())


@pytest.mark.usefixtures("attributes")
def test_assortativity_is_a_series_of_each_layer(draw: Call, tmp_path: Path) -> None:
    assert draw("within_share", "within_expected", "--by", "client").exit_code == 0
    with (tmp_path / "figure.csv").open(newline="") as file:
        assert {row["layer"] for row in csv.DictReader(file)} == {"mesh", "overlay"}
    for words in (["--with", "monday2"], ["--peer", "alice"]):
        assert draw("degree", "--by", "client", *words).exit_code in (1, 2)


@pytest.mark.usefixtures("attributes")
@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("--kind survival", {"mesh", "overlay", "presence", "subscriptions"}),
        ("--kind survival --layers mesh,overlay", {"mesh", "overlay"}),
        ("--kind survival --layers mesh --by topic", {"mesh news"}),
        ("--kind survival --layers overlay --by client", {"overlay a", "overlay unknown"}),
        ("made jaccard_mean", {"mesh", "overlay"}),
        ("made --topic news", {"mesh"}),
    ],
)  # fmt: skip
def test_churn_has_a_line_for_each_layer(
    draw: Call, tmp_path: Path, words: str, lines: set[str]
) -> None:
    assert draw(*words.split()).exit_code == 0
    with (tmp_path / "figure.csv").open(newline="") as file:
        assert {row["line"].strip() for row in csv.DictReader(file)} == lines
    refused = draw(*words.split(), "--peer", "alice", "--peer", "bob")
    assert refused.exit_code == 2


def test_control_messages_have_a_line_for_each_kind(
    draw: Call, tmp_path: Path, workspace: Path
) -> None:
    add_control(workspace, "monday")
    assert draw("control/messages_sent", "control/ids_sent", "--to", "1").exit_code == 0
    svg = (tmp_path / "figure.svg").read_text("utf-8")
    assert all(f">{words}<" in svg for words in ("graft", "ihave", "messages sent", "ids sent"))
    with (tmp_path / "figure.csv").open(newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert rows == [("0", "graft", "2", ""), ("1", "graft", "5", ""), ("1", "ihave", "7", "90")]
    assert draw("control/messages_sent", "--peer", "alice", "--topic", "news").exit_code == 0
    for words in (["degree"], ["--kind", "ecdf"], ["--by", "client"]):
        refused = draw("control/messages_sent", *words)
        assert (refused.exit_code, CONTROL_SERIES in refused.stderr) == (2, True), words


@pytest.mark.parametrize(
    ("column", "kind", "by"),
    [
        ("duplicates/with_duplicates", "series", "interval"),
        ("duplicates/duplicates", "ecdf", "message"),
        ("amplification/messages", "series", "interval"),
        ("reachability/reachable", "ccdf", None),
        ("coverage/coverage_us_50", "density", None),
        ("clocks/offset_us_max", "ecdf", None),
    ],
)
def test_columns_of_arrivals_are_drawn_as_their_table_has_them(
    draw: Call, tmp_path: Path, workspace: Path, column: str, kind: str, by: str | None
) -> None:
    table, _, name = column.partition("/")
    rows = getattr(Run.open(workspace, "monday"), table)(*[by] if by else []).to_pylist()
    assert draw(column, "--kind", kind).exit_code == 0
    with (tmp_path / "figure.csv").open(newline="") as file:
        drawn = [row[name] for row in csv.DictReader(file)]
    assert drawn == ["" if row[name] is None else str(row[name]) for row in rows]


def test_columns_of_arrivals_are_drawn_alone(draw: Call) -> None:
    for words in ("reachability/reachable", "duplicates/none", "clocks/peer amplification/bytes"):
        assert draw(*words.split()).exit_code == 2
    for words in ("duplicates/duplicates degree", "duplicates/duplicates --layers mesh"):
        result = draw(*words.split())
        assert (result.exit_code, ARRIVALS_ALONE in result.stderr) == (2, True)


@pytest.mark.usefixtures("two_more")
@pytest.mark.parametrize(
    "words", ["made", "--kind survival", "links", "degree --kind ecdf", "--kind coverage"]
)
def test_several_runs_have_a_line_each_and_their_rows_in_the_csv(
    draw: Call, tmp_path: Path, words: str
) -> None:
    assert draw(*words.split(), "--with", "other", "--with", "third").exit_code == 0
    svg = (tmp_path / "figure.svg").read_text("utf-8")
    assert all(name in svg for name in ("monday", "other", "third"))
    with (tmp_path / "figure.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    counts = Counter(row["run"] for row in rows)
    assert set(counts) == {"monday", "other", "third"}
    assert len(set(counts.values())) == 1


@pytest.mark.usefixtures("two_more")
def test_several_runs_and_several_peers_or_times_are_refused(draw: Call) -> None:
    for words in ("degree --peer alice --peer bob", "degree --kind ecdf --at 0,1"):
        result = draw(*words.split(), "--with", "other")
        assert (result.exit_code, TIMES_PEERS_OR_RUNS in result.stderr) == (2, True)


def test_overlay_at_several_times_has_the_links_of_each_in_the_csv(
    draw: Call, tmp_path: Path
) -> None:
    assert draw("--kind", "overlay", "--at", "0,1,3").exit_code == 0
    with (tmp_path / "figure.csv").open(newline="") as file:
        links = Counter(row["interval"] for row in csv.DictReader(file))
    assert links == {"0": 4, "1": 4, "3": 1}


@pytest.mark.parametrize(
    ("size", "pixels"),
    [
        ("2in", (300, None)),
        ("2x1.5in", (300, 225)),
        ("5.08cm", (300, None)),
        ("320x240", (320, 240)),
        ("320x240px", (320, 240)),
    ],
)
def test_size_has_one_meaning_by_its_unit(
    draw: Call, tmp_path: Path, size: str, pixels: tuple[int, int | None]
) -> None:
    assert draw("links", "--size", size, file="figure.png").exit_code == 0
    assert draw("m0", "--kind", "tree", "--size", size, file="figure.gif").exit_code == 0
    for form in ("png", "gif"):
        with Image.open(tmp_path / f"figure.{form}") as image:
            assert image.width == pixels[0]
            assert pixels[1] is None or abs(image.height - pixels[1]) <= 1


@pytest.mark.parametrize("size", ["0", "wide", "3in5", "0.1in", "12", "100000x2"])
def test_size_that_is_none_is_refused_with_examples(draw: Call, size: str) -> None:
    result = draw("links", "--size", size)
    assert result.exit_code == 2
    tells(result.stderr, "--size", size, "3.5in", "1280x720")


def test_style_and_place_that_are_unknown_are_refused(draw: Call) -> None:
    for words, names in (("--style poster", STYLES), ("--legend left", ["upper left"])):
        result = draw("links", *words.split())
        assert result.exit_code == 2
        tells(result.stderr, words.split()[1], names[0])


def test_gallery_has_every_kind_style_and_figure_with_a_small_picture() -> None:
    page = PAGE.read_text("utf-8")
    drawn = drawn_in(page)
    assert len(drawn) == page.count("![")
    kinds = {one.words[one.words.index("--kind") + 1] for one in drawn if "--kind" in one.words}
    assert {*kinds, "series"} == {*KINDS}
    styles = {one.words[one.words.index("--style") + 1] for one in drawn if "--style" in one.words}
    assert styles == {*STYLES}
    for one in drawn:
        assert one.words[-1] == one.file
        assert one.path.stat().st_size < 150_000
    pictures = {path.name for path in PICTURES.glob("gallery-*")}
    assert pictures == {one.path.name for one in drawn}


@pytest.mark.parametrize("page", gallery.PAGES, ids=lambda page: page.stem)
def test_pictures_are_drawn_by_the_commands_of_their_page(page: Path) -> None:
    """Otherwise: `make pictures`."""
    drawn = [one for one in drawn_in(page.read_text("utf-8")) if one.path.suffix == ".png"]
    assert drawn
    for one in drawn:
        with Image.open(one.path) as image:
            assert image.info.get(gallery.DRAWN_BY) == shlex.join(one.words)


def test_pictures_of_the_docs_are_drawn_by_something() -> None:
    drawn = {one.name for page in gallery.PAGES for one in drawn_in(page.read_text("utf-8"))}
    others = {path.name for path in PICTURES.iterdir()} - drawn - gallery.OF_EXPERIMENTS
    assert {re.split(r"[-.]", name)[0] for name in others} == gallery.OF_PAGES


def test_gallery_begins_with_the_runs_that_it_draws() -> None:
    page = PAGE.read_text("utf-8")
    names = {
        words[words.index(option) + 1]
        for words in runs_of(page)
        for option in ("--run", "--ingest")
        if option in words
    }
    assert {one.words[1] for one in drawn_in(page) if one.words[0] == "plot"} <= names


def test_gallery_uses_only_options_that_apply() -> None:
    for one in drawn_in(PAGE.read_text("utf-8")):
        if one.words[0] == "plot":
            kind = one.words[one.words.index("--kind") + 1] if "--kind" in one.words else "series"
            mode = f"film of an {kind}" if one.file.endswith(".gif") else kind
            options = [word for word in one.words if word in APPLIES]
            assert all(mode in APPLIES[option] for option in options), one.words
