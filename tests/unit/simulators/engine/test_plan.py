"""What can be planned, and what is refused before anything is begun."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ROOT
from tests.support.words import naming, unknown
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import SimulatedWorld, make_plan
from vizpub.simulators.engine.simulation import RunningSimulation, simulate
from vizpub.simulators.engine.systems import NO_PARAMETERS, SYSTEMS, system_named


@pytest.mark.parametrize("name", SYSTEMS)
def test_system_parameters_share_no_name_with_world_or_options(name: str) -> None:
    theirs = system_named(name).parameters_type.__dataclass_fields__
    assert not theirs.keys() & SimulatedWorld.__dataclass_fields__.keys()
    assert not theirs.keys() & {"seed", "runs", "out", "replace", "ingest", "layers", "config"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_system_is_planned_with_its_defaults(name: str) -> None:
    assert make_plan(name, {}).describe()["peers"] == 100


@pytest.mark.parametrize("name", SYSTEMS)
def test_plan_is_that_of_the_run_it_made(name: str, tmp_path: Path) -> None:
    """Also where the header of the reports says more than parameters, as for ids."""
    has_own = make_plan(name, {}).own_workload is not None
    interest = {} if has_own else {"interest": "exponential:5s"}
    plan = make_plan(name, {"peers": 10, "intervals": 2, **interest})
    simulate(plan, Folder(tmp_path / "made"))
    (path,) = (tmp_path / "made/reports").iterdir()
    stored = json.loads(gzip.decompress(path.read_bytes()).splitlines()[0])["parameters"]
    assert plan.list_changes(stored) == []
    larger = make_plan(name, {"peers": 11, "intervals": 2, **interest})
    assert larger.list_changes(stored) == ["peers 10, not 11"]
    still = make_plan(name, {"peers": 10, "intervals": 2})
    assert still.list_changes(stored) == [] if has_own else ["interest exponential:5s, not none"]


def test_plan_of_a_class_in_a_file_is_the_same_in_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guide_code: str
) -> None:
    """They have no module of that name, and work in another folder."""
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/deluge.py").write_text(guide_code, "utf-8")
    plan = make_plan("mine/deluge.py:Flood", {"peers": 9, "degree": 3}, 7)
    there = (
        "import pickle, sys; plan = pickle.load(sys.stdin.buffer);"
        "print(plan.system, plan.seed, plan.parameters.degree, plan.world.peers)"
    )
    done = subprocess.run(
        [sys.executable, "-c", there],
        input=pickle.dumps(plan),
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().split() == ["mine/deluge.py:Flood", "7", "3", "9"]
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_other_simulation_of_a_system_has_a_folder_of_its_own(tmp_path: Path) -> None:
    plans = [make_plan("cyclon", {"peers": peers, "intervals": 2}) for peers in (5, 6, 7)]
    folders = []
    for plan in plans:
        folders.append(Folder.of_plan(tmp_path, plan))
        simulate(plan, folders[-1])
    assert folders[0].path == tmp_path / "cyclon-1"
    assert len({folder.path for folder in folders}) == 3
    assert [Folder.of_plan(tmp_path, plan) for plan in plans] == folders


@pytest.mark.parametrize("name", SYSTEMS)
def test_system_names_the_layers_of_its_links(name: str) -> None:
    chosen: dict[str, Any] = {"peers": 30, "intervals": 5}
    if make_plan(name, {}).own_workload is None:
        chosen |= {"publications": "every:1,from=anyone", "workload": "hierarchy"}
    options = system_named(name).parameters_type.__dataclass_fields__
    with_layers = {"broadcast": ["plumtree"], "cache_root": [True], "mapping": ["c", "offline-c"]}
    found: set[str] = set()
    for option, values in with_layers.items():
        for value in values if option in options else ():
            chosen[option] = value
            found |= reported_layers(name, chosen)
    assert (found or reported_layers(name, chosen)) == set(system_named(name).make.layers)


def reported_layers(name: str, chosen: dict[str, Any]) -> set[str]:
    running = RunningSimulation(make_plan(name, chosen))
    told = (json.loads(line) for i in range(5) for line in running.run_interval(i))
    return {link["layer"] for report in told for link in report["neighbors"]}


def test_links_of_chosen_layers_are_reported_alone() -> None:
    running = RunningSimulation(
        make_plan("scribe", {"peers": 30, "intervals": 5, "links": "tree, leafset"})
    )
    told = (json.loads(line) for i in range(5) for line in running.run_interval(i))
    assert {link["layer"] for r in told for link in r["neighbors"]} == {"tree", "leafset"}


def test_parameter_texts_become_values(flood: str) -> None:
    plan = make_plan(flood, {"degree": "6", "loss": "0.25", "interval": "500ms"})
    assert (plan.parameters.degree, plan.world.loss) == (6, 0.25)
    assert plan.world.setting.duration_us == 50_000_000


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"degree": 0}, "degree"),
        ({"degree": "many"}, "degree"),
        ({"peers": 0}, "peers"),
        ({"loss": 1.5}, "loss"),
        ({"interval": "soon"}, "interval"),
        ({"reports": "everything"}, "reports"),
        ({"fanout": 3}, "'fanout'.*degree"),
        ({"links": "overlay,rings"}, unknown("layer", "rings")),
        ({"churn": "exponentail"}, "exponential"),
        ({"latency": "constant:quick"}, "quick"),
        ({"workload": "zipf:topic=3"}, "topics"),
    ],
)
def test_invalid_parameter_is_refused_with_a_hint(
    flood: str, chosen: dict[str, Any], told: str
) -> None:
    with pytest.raises(UseError, match=told):
        make_plan(flood, chosen)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("interval", "5", "interval is a duration such as 50ms or 1.5s, not '5'"),
        ("interval", "0s", "interval: '0s' is shorter than a microsecond"),
        ("loss", "1.5", "loss is a number from 0 to 1, not '1.5'"),
        ("peers", True, "peers is a whole number from 1 to 10,000,000, not 'True'"),
        ("leaf_set", 3, "leaf_set is a whole number of at least 2, a multiple of 2, not '3'"),
        ("cache_root", "perhaps", "cache_root is true or false, not 'perhaps'"),
    ],
)
def test_invalid_value_is_refused_with_the_accepted_values(
    name: str, given: object, told: str
) -> None:
    with pytest.raises(UseError) as raised:
        make_plan("scribe", {name: given})
    assert str(raised.value) == told


def test_unknown_or_unfit_system_is_refused() -> None:
    with pytest.raises(UnknownName, match=unknown("system", "poldercats", "poldercast")):
        system_named("poldercats")
    with pytest.raises(InputError, match=naming("nowhere.py")):
        system_named("nowhere.py:Class").make  # noqa: B018
    with pytest.raises(InputError, match=naming("vizpub.simulators.engine.network", "'Flod'")):
        system_named("vizpub.simulators.engine.network:Flod").make  # noqa: B018
    with pytest.raises(InputError, match=NO_PARAMETERS):
        system_named("vizpub.simulators.engine.clock:Traffic").parameters_type  # noqa: B018
