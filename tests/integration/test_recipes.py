"""The recipes of docs/recipes do what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.broker import free_ports
from tests.support.ingested import copied
from tests.support.printed import OWN_RUNS, RECIPES, anew, called, furnish, python_anew, typed_in
from vizpub.cli.main import app
from vizpub.questions.run import Run
from vizpub.runstore.store import StoredRun

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "recipes"
PEERSIM = ROOT / "examples" / "peersim"
INDEX = FOLDER / "README.md"
FRAMES = FOLDER / "frames.md"
START = ROOT / "docs" / "start.md"
CLIENTS = FOLDER / "clients.md"
"""Its collector keeps running; tests/integration/test_clients.py runs the clients."""
LIVE = FOLDER / "live.md"


def named(paths: list[Path]) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in paths]


@pytest.fixture
def with_the_demo(gossipsub: StoredRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the workspace of `vizpub demo`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vizpub-data").mkdir()
    copied(gossipsub, tmp_path / "vizpub-data")


def test_index_has_every_recipe() -> None:
    linked = set(re.findall(r"\]\((\w[\w-]+\.md)\)", INDEX.read_text("utf-8")))
    assert linked == {path.name for path in RECIPES} - {INDEX.name}


def test_recipes_say_what_they_answer_and_how_to_read_it() -> None:
    for path in RECIPES:
        text = path.read_text("utf-8")
        if path != INDEX:
            question = re.match(r"# .+\n\n\*\*(.+\?)\*\*", text)
            assert question, path
            assert question[1].split(". ")[-1].split()[0].rstrip(",") in INDEX.read_text("utf-8")
            assert "\n## How to read it\n" in text, path
            assert "\nerror: " not in text, path
        for picture in re.findall(r"\]\((\.\./pictures/[^)]+)\)", text):
            assert (path.parent / picture).is_file(), picture


@pytest.mark.spark
@pytest.mark.usefixtures("with_the_demo")
@pytest.mark.parametrize(
    "path",
    named([START, *(path for path in RECIPES if path not in {*OWN_RUNS, INDEX, CLIENTS, LIVE})]),
)
def test_recipe_of_the_demo_runs_as_it_is_printed(path: Path) -> None:
    """Its tables are compared with the other pages', by test_printed.py."""
    page = path.read_text("utf-8")
    furnish(page)
    for words in typed_in(page):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.stderr
        if "-o" in words:
            assert Path(words[words.index("-o") + 1]).stat().st_size
    assert python_anew(page) == page


@pytest.mark.spark
@pytest.mark.usefixtures("with_the_demo")
def test_demo_without_a_load_asks_nothing_of_neo4j() -> None:
    done = CliRunner().invoke(app, ["demo", "--no-load"])
    assert done.exit_code == 0, done.stderr
    assert Path("demo/overlay.gexf").stat().st_size
    assert not Path("vizpub-data/neo4j").exists()
    assert "$ vizpub cypher" not in done.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("with_the_demo")
def test_polars_reads_a_run_as_the_recipe_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", FRAMES.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "frames.md", "exec"), names)
    assert dict(names["links"].group_by("layer").len().rows()).keys() == {"mesh", "streams"}


@pytest.mark.spark
@pytest.mark.usefixtures("with_the_demo")
def test_lines_in_r_read_a_run_as_the_recipe_says() -> None:
    if (path := shutil.which("Rscript")) is None:
        pytest.skip("no Rscript: the recipe's lines in R are not run")
    (code,) = re.findall(r"```r\n(.*?)```", FRAMES.read_text("utf-8"), re.DOTALL)
    printed = subprocess.run([path, "-e", code], capture_output=True, text=True, check=True).stdout
    assert {"mesh", "streams"} <= set(printed.split())


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("path", named(OWN_RUNS))
def test_recipe_with_own_runs_prints_what_it_has(
    path: Path, vizpub_here: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = path.read_text("utf-8")
    furnish(page)
    for words in typed_in(page):
        done = vizpub_here(*words)
        assert done.returncode == 0, done.stderr
    assert anew(page, called) == page


@pytest.mark.long
@pytest.mark.spark
def test_live_recipe_collects_what_its_peers_report(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", LIVE.read_text("utf-8"), re.DOTALL)
    script = "set -em\n" + "".join(blocks).replace("8600", str(free_ports(1)[0]))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = f"trap 'kill %1 2>/dev/null || true' EXIT\n{script}"
    done = subprocess.run(
        ["timeout", "400", "bash", "-c", script], cwd=tmp_path,
        env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = Run.open(tmp_path / "vizpub-data", "lab")
    assert set(run.peers) == {f"peer-{number}" for number in range(20)}
    overlay = run.metrics("overlay", ["network_size", "links"]).to_pandas()
    # Each interval makes or ends one link of the ring.
    assert (overlay["network_size"] == 20).all()
    assert (overlay["links"].diff().dropna().abs() == 1).all()


STANDINS = {
    "peersim/core/Control": "public interface Control { boolean execute(); }",
    "peersim/core/Protocol": "public interface Protocol {}",
    "peersim/core/Linkable": "public interface Linkable { int degree(); Node getNeighbor(int i); }",
    "peersim/core/Node": (
        "public class Node { public long id; public Protocol[] all; public long getID() "
        "{ return id; } public boolean isUp() { return id != 2; } "
        "public Protocol getProtocol(int i) { return all[i]; } }"
    ),
    "peersim/core/Network": (
        "public class Network { public static Node[] nodes; public static int size() "
        "{ return nodes.length; } public static Node get(int i) { return nodes[i]; } }"
    ),
    "peersim/core/CommonState": (
        "public class CommonState { public static final String PAR_SEED = \"random.seed\"; "
        "public static long now; public static java.util.Random r = new java.util.Random(1); "
        "public static long getTime() { return now; } }"
    ),
    "peersim/config/Configuration": (
        "public class Configuration { public static int getPid(String name) { return 0; } "
        "public static long getLong(String name) { return name.endsWith(\"step\") ? 1000 : 7; } "
        "public static String getString(String name) { return \"reports.ndjson\"; } "
        "public static String getString(String name, String usual) { return usual; } }"
    ),
}  # fmt: skip
"""As much of PeerSim as its control uses: a ring of three, of which node 2 is down."""
RING = """
import java.util.List;
import peersim.core.*;

class Ring {
    public static void main(String[] words) throws Exception {
        Network.nodes = new Node[] {new Node(), new Node(), new Node()};
        for (int i = 0; i < 3; i++) {
            final int next = (i + 1) % 3;
            Network.nodes[i].id = i;
            Network.nodes[i].all = new Protocol[] {new Neighbour(Network.nodes[next])};
        }
        VizpubReports reports = new VizpubReports("control.vizpub");
        CommonState.now = 1500;
        VizpubReports.sent(Network.nodes[0], "m", "all", 0, List.of(Network.nodes[1]));
        VizpubReports.received(Network.nodes[1], "m", "all", 1, Network.nodes[0]);
        CommonState.now = 1999;
        reports.execute();
        CommonState.now = 2999;
        reports.execute();
    }

    record Neighbour(Node node) implements Protocol, Linkable {
        public int degree() { return 1; }
        public Node getNeighbor(int i) { return node; }
    }
}
"""


def test_control_of_peersim_reports_nodes_that_are_up(tmp_path: Path) -> None:
    """Against stand-ins of PeerSim's classes; the shipped reports are PeerSim's own."""
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None:
        pytest.skip("no javac: the control for PeerSim is not compiled")
    for name, code in STANDINS.items():
        (file := tmp_path / f"{name}.java").parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"package {name.rpartition('/')[0].replace('/', '.')}; {code}")
    (tmp_path / "Ring.java").write_text(RING)
    shutil.copy(PEERSIM / "VizpubReports.java", tmp_path)
    subprocess.run([javac, "VizpubReports.java", "Ring.java"], cwd=tmp_path, check=True)
    subprocess.run([java, "Ring"], cwd=tmp_path, check=True)
    header, *reports = map(json.loads, (tmp_path / "reports.ndjson").read_text().splitlines())
    assert (header["interval_us"], header["seed"]) == (1_000_000, 7)
    assert [(r["peer"], r["interval"], r["neighbors"]) for r in reports] == [
        ("0", 1, ["1"]), ("1", 1, ["2"]), ("0", 2, ["1"]), ("1", 2, ["2"]),
    ]  # fmt: skip
    (sent,), (received,) = reports[0]["sent"], reports[1]["received"]
    assert (sent["message"], sent["to"], sent["hops"], sent["time_us"]) == (
        "m",
        ["1"],
        0,
        1_500_000,
    )
    assert (received["from"], received["hops"]) == ("0", 1)
    assert [r["sent"] + r["received"] for r in reports[2:]] == [[], []]
