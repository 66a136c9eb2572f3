"""All systems by name: the same seed gives the same reports in every process."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ROOT
from tests.support.ways import Ways
from vizpub.analytics.comparison.groups import group_runs
from vizpub.model.clock import Clock
from vizpub.model.run import RunFacts
from vizpub.simulators.designs.system import CLASSES, system_of
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate
from vizpub.simulators.engine.systems import SYSTEMS

WORLD = {"peers": 24, "intervals": 8}
CHANGING = {
    "workload": "uniform:topics=6,subscriptions=2",
    "publications": "every:2,first=4",
    "churn": "exponential:20s,down=4s,crash=0.5",
    "interest": "exponential:10s,pause=5s",
    "loss": 0.02,
}
"""Crashes, departures, lost messages and changes of interest: what makes peers keep sets."""
VARIANTS = {
    "channels": [{**WORLD, "mapping": mapping} for mapping in ("c", "offline-c")],
    "damulticast": [
        {**WORLD, **CHANGING, "workload": workload}
        for workload in (CHANGING["workload"], "hierarchy:topics=13,subscriptions=2")
    ],
    "gossipsub": [{**WORLD, **CHANGING, "flood_publish": flood} for flood in (True, False)],
    "hyparview": [
        {**WORLD, **CHANGING, "broadcast": broadcast, "failures": failures, "recovery": "last:2"}
        for broadcast, failures in (
            ("flood", "at-once"),
            ("fanout:3", "on-send"),
            ("gossip:0.7", "at-once"),
            ("plumtree:batch=100ms,optimise=2", "on-send"),
        )
    ],
    "broadcast-or-tree": [
        {**WORLD, **CHANGING, "threshold": 8, "broadcasts": broadcasts}
        for broadcasts in ("hyparview", "chord")
    ],
    "chord": [
        {**WORLD, **CHANGING, "lookup": how, "lookup_period": "500ms"}
        for how in ("recursive", "iterative")
    ],
    "scribe": [{**WORLD, **CHANGING, "cache_root": cached} for cached in (False, True)],
    "scribe-chord": [{**WORLD, **CHANGING, "both_ways": both} for both in (False, True)],
}
"""What is not the default of a system; the others are run once."""

ALL = [(name, chosen) for name in SYSTEMS for chosen in VARIANTS.get(name, [{**WORLD, **CHANGING}])]

OTHERS = [
    *map(system_of, CLASSES),
    "vizpub.experiments.subscriber_links:SubscriberScribe",
    f"{ROOT}/examples/rumour.py:Rumour",
]
"""Systems without a name of their own."""

OFTEN = {"peers": 12, "interval": "50ms", "intervals": 120}
"""Reports so often that links are known when copies are sent."""


def reports_of(place: Path, system: str, chosen: dict[str, Any]) -> list[Path]:
    """Simulate into a folder, once; return the files with the reports."""
    folder = Folder(place)
    if not folder.reports.exists():
        simulate(make_plan(system, chosen, 7), folder)
    return sorted(folder.reports.iterdir())


class Changing:
    """The reports of each variant of a system in a world that changes, simulated once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def reports(self, variant: int) -> list[Path]:
        """Return the files with the reports of one of ALL."""
        return reports_of(self.folder / str(variant), *ALL[variant])

    def digest(self, variant: int) -> str:
        """Return a digest of these files."""
        digest = hashlib.sha256()
        for path in self.reports(variant):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()


def print_digests(folder: str) -> None:
    """Print, in a process of its own, the digests of all variants, and a hash."""
    changing = Changing(Path(folder))
    print(json.dumps([[changing.digest(variant) for variant in range(len(ALL))], hash("peer")]))


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Changing:
    return Changing(tmp_path_factory.mktemp("changing"))


@pytest.mark.parametrize("name", SYSTEMS)
def test_system_says_what_it_is_and_takes_parameters(name: str) -> None:
    assert SYSTEMS[name].summary.endswith(".")
    assert SYSTEMS[name].parameters_type() is not None


@pytest.mark.parametrize("name", SYSTEMS)
def test_runs_that_differ_in_the_seed_are_replicates_for_comparisons(
    name: str, tmp_path: Path
) -> None:
    facts = []
    for seed in (1, 2):
        folder = Folder(tmp_path / str(seed))
        simulate(make_plan(name, {"peers": 24, "intervals": 2}, seed), folder)
        with gzip.open(min(folder.reports.iterdir())) as lines:
            header = json.loads(next(lines))
        facts.append(RunFacts(f"run-{seed}", "reports", Clock(), name, header["parameters"], seed))
    assert group_runs(facts).groups == (name, name)


@pytest.mark.parametrize("name", SYSTEMS)
def test_copies_of_every_system_are_reported_hop_by_hop(
    name: str, changing: Changing, tmp_path: Path
) -> None:
    """By its reports alone: each copy is listed and counted, and was sent by a peer that held it
    with one hop less. With churn, a peer may take another for its child that has forgotten it, so
    that neither reports a link; without, each copy went over a link (`check_calm`).
    """
    for variant, (system, chosen) in enumerate(ALL):
        if system == name:
            ways = Ways(changing.reports(variant))
            assert [*ways.uncounted(), *ways.unsent()] == []
            check_calm(tmp_path / str(variant), system, chosen)


@pytest.mark.parametrize("name", OTHERS, ids=lambda name: name.rpartition(":")[2])
def test_copies_of_systems_without_a_name_are_reported_hop_by_hop(
    name: str, tmp_path: Path
) -> None:
    chosen = {**WORLD, **CHANGING}
    ways = Ways(reports_of(tmp_path / "changing", name, chosen))
    assert [*ways.uncounted(), *ways.unsent()] == []
    check_calm(tmp_path / "calm", name, chosen)


def check_calm(place: Path, name: str, chosen: dict[str, Any]) -> None:
    """Each copy of a world without changes went over a link that one of the two had then; also
    those of publishers that do not subscribe.
    """
    late = {"publications": "every:1,first=100,from=anyone"} if "publications" in chosen else {}
    fewer = {"threshold": 4} if "threshold" in chosen else {}
    calm = {key: chosen[key] for key in chosen if key not in ("churn", "interest", "loss")}
    ways = Ways(reports_of(place, name, {**calm, **OFTEN, **late, **fewer}))
    assert (ways.copies > 100) == (name != "cyclon")  # which carries no publications
    assert [*ways.uncounted(), *ways.unsent(), *ways.unlinked()] == []


def test_reports_of_every_system_are_the_same_whatever_the_hash_seed(
    changing: Changing, tmp_path: Path
) -> None:
    """Every text has another hash in another process, so sets of texts another order."""
    program = f"from {__name__} import print_digests; print_digests({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": "4242"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    digests, hashed = json.loads(done.stdout)
    assert hashed != hash("peer")
    assert len({*digests}) == len(ALL) > 15
    assert digests == [changing.digest(variant) for variant in range(len(ALL))]
