"""All systems by name: the same seed gives the same reports in every process."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.ways import Ways
from vizpub.analytics.comparison.groups import group_runs
from vizpub.model.clock import Clock
from vizpub.model.run import RunFacts
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

OFTEN = {"interval": "50ms", "intervals": 230}
"""Reports so often that links are known when copies are sent."""

DIGESTS = """
import hashlib, json, sys
from pathlib import Path
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate

out, told = Path(sys.argv[1]), {}
for number, (system, chosen) in enumerate(json.loads(sys.argv[2])):
    folder = Folder(out / str(number))
    simulate(make_plan(system, chosen, 7), folder)
    digest = hashlib.sha256()
    for path in sorted(folder.reports.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    told[f"{number} {system}"] = digest.hexdigest()
print(json.dumps([told, hash("peer")]))
"""


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
        simulate(make_plan(name, {"peers": 60, "intervals": 2}, seed), folder)
        with gzip.open(min(folder.reports.iterdir())) as lines:
            header = json.loads(next(lines))
        facts.append(RunFacts(f"run-{seed}", "reports", Clock(), name, header["parameters"], seed))
    assert group_runs(facts).groups == (name, name)


@pytest.mark.parametrize("name", SYSTEMS)
def test_copies_of_every_system_are_reported_hop_by_hop(name: str, tmp_path: Path) -> None:
    """By its reports alone: each copy is listed and counted, was sent by a peer that held it with
    one hop less, and went over a link that one of the two had then. With churn, a peer may take
    another for its child that has forgotten it, so that neither reports a link.
    """
    for number, chosen in enumerate(VARIANTS.get(name, [{**WORLD, **CHANGING}])):
        ways = followed(name, chosen, tmp_path / f"changing {number}")
        assert [*ways.uncounted(), *ways.unsent()] == []
        late = {"publications": "every:1,first=200"} if "publications" in chosen else {}
        calm = {key: chosen[key] for key in chosen if key not in ("churn", "interest", "loss")}
        ways = followed(name, {**calm, **OFTEN, **late}, tmp_path / f"calm {number}")
        assert (ways.copies > 100) == (name != "cyclon")  # which carries no publications
        assert [*ways.uncounted(), *ways.unsent(), *ways.unlinked()] == []


def followed(name: str, chosen: dict[str, Any], path: Path) -> Ways:
    folder = Folder(path)
    simulate(make_plan(name, chosen, 7), folder)
    return Ways(folder.reports.iterdir())


def test_reports_of_every_system_are_the_same_whatever_the_hash_seed(tmp_path: Path) -> None:
    """Every text has another hash in each of two processes, so sets of texts another order."""
    runs = [
        (name, chosen) for name in SYSTEMS for chosen in VARIANTS.get(name, [{**WORLD, **CHANGING}])
    ]
    digests = []
    for seed in ("0", "4242"):
        words = [sys.executable, "-c", DIGESTS, str(tmp_path / seed), json.dumps(runs)]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        digests.append(json.loads(done.stdout))
    (one, hashed), (other, hashed_otherwise) = digests
    assert hashed != hashed_otherwise
    assert len({*one.values()}) == len(runs) > 15
    assert one == other
