"""What a run keeps of each peer for appends: states of those that report, and few others."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.integration.test_append import Lab, Record, same_runs, told
from tests.support.faults import LARGE
from tests.support.few import few
from tests.support.ingested import Store
from vizpub.ingest.sources.folded import CARRIED
from vizpub.ingest.spark import scale
from vizpub.runstore.manifest import Part
from vizpub.runstore.store import StoredRun

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

GAP = 1
SPOKEN = {
    **dict.fromkeys("ab", range(14)),
    "silent": (0, 1, 12, 13),
    "late": range(4, 14),
    "leaves": (0, 1, 2, 3, 8, 9, 10, 12),
    "patchy": (0, 2, 4, 5, 7, 10, 12),
    "gone": (0, 1),
}
"""The intervals in which each peer reports."""
LEAVES = {("leaves", 3), ("leaves", 10), ("gone", 1)}


@pytest.fixture
def lab(spark: SparkSession, stored: Store, tmp_path: Path) -> Lab:
    return Lab(spark, stored, tmp_path)


def header(totals: bool) -> Record:
    counters = "total" if totals else "interval"
    return {"format": "vizpub.run/1", "run": "lab", "counters": counters}


def interval(number: int) -> list[Record]:
    """Some reports leave out lists, which then hold if the peer stayed, and only then."""
    peers = [peer for peer, at in SPOKEN.items() if number in at]
    return [told(peer, number, **_content(peer, number)) for peer in peers]


def _content(peer: str, number: int) -> Record:
    if (peer, number) in LEAVES:
        return {"left": True}
    control = {"sent": {"messages": 5 * number + len(peer), "bytes": 70 * number}}
    kinds = [{"kind": "graft", "topic": f"t{number % 2}", "messages_sent": number}]
    content: Record = {"control": control, "control_kinds": kinds}
    if number % 3 != 1:
        content["neighbors"] = [other for other in "ab" if other != peer] + [f"x{number // 4}"]
    if number % 4 != 2:
        content |= {"topics": ["news", f"t{number // 5}"], "roles": [{"role": "seed"}]}
    received = [{"message": f"m{number - 1}", "topic": "news", "from": "b", "hops": 1}]
    if peer == "b":
        content["sent"] = [{"message": f"m{number}", "topic": "news", "hops": 0, "to": ["a"]}]
    elif number and peer != "patchy":
        content["received"] = received
    return content


def carried(run: StoredRun, parts: tuple[Part, ...]) -> list[tuple[str, int]]:
    """The peers of these parts, and the intervals of their states, as the files have them."""
    folders = [run.directory / part.directory for part in parts]
    rows = [pq.read_table(folder, columns=["peer", "interval"]).to_pylist() for folder in folders]
    return sorted((row["peer"], row["interval"]) for part in rows for row in part)


@pytest.mark.parametrize("totals", [False, True])
def test_append_writes_states_of_the_peers_that_report(lab: Lab, totals: bool) -> None:
    """The others' stay as they are if counters go on from them, and are dropped otherwise."""
    peers = [f"p{n}" for n in range(9)]
    first = [header(totals), *(told(peer, 0, neighbors=["p0"]) for peer in peers)]
    lab.ingest("lab", lab.write("first", first), append=True)
    few_peers = [told(peer, 1, neighbors=["p1"]) for peer in peers[:4]]
    lab.ingest("lab", lab.write("more", few_peers), append=True)
    run = lab.run("lab")
    entry = run.manifest.carry[CARRIED]
    newest = carried(run, (entry.newest,))
    assert newest == [(peer, 1) for peer in peers[:4]]
    older = [(peer, 0) for peer in peers] if totals else []
    assert carried(run, entry.older) == older
    assert entry.rows == len(newest) + len(older)


@pytest.mark.parametrize(
    ("totals", "large"),
    few(product([True, False], [False, True]), product([True, False], [False])),
)
def test_peer_that_is_silent_for_many_appends_goes_on_as_in_one_ingest(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, totals: bool, large: bool
) -> None:
    """One joins, one leaves and comes back, one is silent, one misses reports now and then."""
    if large:
        monkeypatch.setattr(scale, "SMALL_INPUT", LARGE)
    files = [lab.write("head", [header(totals), *interval(0)])]
    files += [lab.write(f"part{number}", interval(number)) for number in range(1, 14)]
    for file in files:
        lab.ingest("fed", file, append=True, gap_tolerance=GAP)
    fed = lab.run("fed")
    parts = fed.manifest.carry[CARRIED].parts
    last = {peer: max(at) for peer, at in SPOKEN.items()}
    kept = {peer for peer, at in last.items() if totals or at >= 13 - GAP}
    states = carried(fed, parts)
    assert {peer for peer, _ in states} == kept
    assert kept != set(SPOKEN) or totals
    assert {(peer, last[peer]) for peer in kept} <= {*states}
    assert len(parts) < 5
    assert len(states) < 4 * len(SPOKEN)
    same_runs(fed, lab.take(f"fed-{totals}", *files, gap_tolerance=GAP))
