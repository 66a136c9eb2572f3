"""The notebooks of the examples, executed, against what was recorded inside the network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.ingested import ROOT, SMALL, truth, workspace_of
from vizpub.runstore.store import StoredRun

pytestmark = pytest.mark.spark

NOTEBOOKS = ROOT / "examples/notebooks"
FIRST = "first-look"
READING, MAKING = ("delays-and-duplicates",), ("mixing-by-client", "own-metric", "two-systems")
"""Those that only read the demo's run, as the first does, and those that make runs."""
STRICT = "import warnings; warnings.simplefilter('error')"
RESULTS = """
import json
print(json.dumps({
    "links": list(graph.edges), "peers": list(graph),
    "mesh": list(mesh.edges), "subscribers": list(mesh),
    "vizpub": by_vizpub, "networkx": by_networkx,
    "topics": by_topic.to_dict("index"),
    "message": farthest, "way": list(way.edges), "publisher": publisher, "depths": depths,
}))
"""
"""Put behind the notebook's cells: what is in its variables then."""

PAIRS = ("links", "mesh", "way")


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def execute(name: str, folder: Path, workspace: Path, *more: str) -> Any:
    """The notebook with its outputs, in a copy of the examples; warnings are errors. The texts of
    `more` are cells behind its own.
    """
    shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True)
    place = folder / f"notebooks/{name}.ipynb"
    notebook = read(place)
    before, *after = (nbformat.v4.new_code_cell(text) for text in (STRICT, *more))  # type: ignore[no-untyped-call]
    notebook.cells = [before, *notebook.cells, *after]
    nbformat.write(notebook, place)  # type: ignore[no-untyped-call]
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", "execute", "--inplace", str(place)],
        env={**os.environ, "VIZPUB_WORKSPACE": str(workspace)},
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return read(place)


def outputs(notebook: Any) -> dict[str, Any]:
    """What the cells show, by their names."""
    cells = [cell for cell in notebook.cells[1:] if cell.cell_type == "code"]
    return {cell.id: cell.outputs[0].get("data") for cell in cells if cell.outputs}


@pytest.fixture(scope="module")
def executed(gossipsub: StoredRun, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The first notebook, and the results in its variables."""
    folder = tmp_path_factory.mktemp("notebook")
    return execute(FIRST, folder, workspace_of(gossipsub), RESULTS)


@pytest.fixture(scope="module")
def results(executed: Any) -> Any:
    found = json.loads(executed.cells[-1].outputs[0].text)
    return {name: {*map(tuple, of)} if name in PAIRS else of for name, of in found.items()}


@pytest.fixture(scope="module")
def snapshot() -> Any:
    """The network 50 seconds after its start, as its nodes saw it, by their names."""
    (found,) = [s for s in truth()["snapshots"] if s["t_ns"] - truth()["start_ns"] == 50 * 10**9]
    return found


def peers() -> dict[int, str]:
    return {node["idx"]: node["peer_id"] for node in truth()["nodes"]}


def pairs(neighbours: dict[str, list[int]]) -> set[tuple[str, str]]:
    of = peers()
    return {(of[int(src)], of[dst]) for src, found in neighbours.items() for dst in found}


@pytest.mark.parametrize("name", [FIRST, *READING, *MAKING])
def test_notebook_is_kept_without_outputs(name: str) -> None:
    code = [cell for cell in read(NOTEBOOKS / f"{name}.ipynb").cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_notebook_cells_each_show_output_without_warnings(executed: Any) -> None:
    shown = {cell.id: cell.outputs for cell in executed.cells[1:-1] if cell.cell_type == "code"}
    for name, outputs in shown.items():
        assert [o.output_type for o in outputs] in (["execute_result"], ["display_data"]), name
    pictures = [name for name, outputs in shown.items() if "image/png" in outputs[0].data]
    assert pictures == ["series", "topic"]
    assert {n for n, outputs in shown.items() if "text/html" not in outputs[0].data} == {*pictures}


def test_table_caption_names_run_interval_and_size(executed: Any, snapshot: Any) -> None:
    (cell,) = [cell for cell in executed.cells if cell.id == "overlay"]
    links = sum(len(found) for of in snapshot["mesh"].values() for found in of.values())
    links += sum(map(len, snapshot["pubsub_peers"].values()))
    caption = f"<caption>gossipsub, overlay in interval 49 (50 s): {links} rows of 9 columns"
    assert caption in cell.outputs[0].data["text/html"]


def test_overlay_equals_the_recorded_network(results: Any, snapshot: Any) -> None:
    assert results["links"] == pairs(snapshot["pubsub_peers"]) | {
        pair for mesh in snapshot["mesh"].values() for pair in pairs(mesh)
    }
    running = {
        node["peer_id"]
        for node in truth()["nodes"]
        if node["joined_ns"] <= snapshot["t_ns"] < node.get("left_ns", snapshot["t_ns"] + 1)
    }
    assert {*results["peers"]} == running


def test_metrics_of_vizpub_equal_networkx(results: Any) -> None:
    assert len(results["networkx"]) == 6
    told = {name: results["vizpub"][name] for name in results["networkx"]}
    assert told == pytest.approx(results["networkx"], rel=1e-9)


def test_topic_equals_the_recorded_subscribers_and_mesh(results: Any, snapshot: Any) -> None:
    of = peers()
    assert {*results["subscribers"]} == {of[idx] for idx in snapshot["subscribers"]["alerts"]}
    assert results["mesh"] == pairs(snapshot["mesh"]["alerts"])


def test_hit_ratios_per_topic_equal_the_facts(results: Any) -> None:
    recorded = json.loads((SMALL / "facts.json").read_text("utf-8"))
    told = ("delivered", "eligible", "hit_ratio")
    found = {t: [of[name] for name in told] for t, of in results["topics"].items()}
    assert found == recorded["hit_per_topic_excl_publisher"]


def test_tree_of_a_message_equals_the_recorded_deliveries(results: Any) -> None:
    of = peers()
    accepted = [m for m in truth()["messages"] if m["kind"] in ("normal", "burst")]
    (message,) = [m for m in accepted if m["id_hex"] == results["message"]]
    deliveries = message["deliveries"]
    assert results["publisher"] == of[message["publisher"]]
    assert results["way"] == {(of[d["from"]], of[d["node"]]) for d in deliveries}
    depths = {of[d["node"]]: d["hops"] for d in deliveries}
    assert results["depths"] == {results["publisher"]: 0, **depths}
    assert max(depths.values()) == max(d["hops"] for m in accepted for d in m["deliveries"])


def test_notebooks_are_all_executed_here() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {FIRST, *READING, *MAKING}


def test_delays_by_hop_equal_the_recorded_deliveries(gossipsub: StoredRun, tmp_path: Path) -> None:
    shown = outputs(execute(*READING, tmp_path, workspace_of(gossipsub)))
    assert "image/png" in shown["distribution"]
    recorded = json.loads((SMALL / "facts.json").read_text("utf-8"))
    delivered = sum(of[0] for of in recorded["hit_per_topic_excl_publisher"].values())
    assert f"deliveries: {delivered} rows" in shown["delays"]["text/html"]


@pytest.mark.long
@pytest.mark.parametrize("name", MAKING)
def test_notebook_that_makes_runs_shows_what_it_says(name: str, tmp_path: Path) -> None:
    shown = outputs(execute(name, tmp_path, tmp_path / "runs"))
    if name == "own-metric":
        assert shown["check"]["text/html"].count("<tr") == 1, "a peer differs from networkx"
    if name == "two-systems":
        assert shown["contrasts"]["text/html"].count("<tr") == 1 + 4
    if name == "mixing-by-client":
        assert "4 rows" in shown["mixing"]["text/html"]
