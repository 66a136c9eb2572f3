"""Whole ingests: from the files of a real trace to the tables of a complete run."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.ingested import GEPHI, TINY, Row, Store, copied, ingested, truth
from tests.support.words import naming, tells, unknown
from vizpub.ingest import stages
from vizpub.ingest.folding import fold_input
from vizpub.ingest.inputs.files import CHANGED
from vizpub.ingest.job import Job
from vizpub.ingest.measures.choice import MeasurementOptions
from vizpub.ingest.pipeline import IngestOutcome, settling_request
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.sources.base import SourceOptions
from vizpub.model.clock import OPEN
from vizpub.model.columns import Table
from vizpub.model.errors import InputError, InputsDiffer, VizpubError
from vizpub.model.tables import TABLES, table
from vizpub.questions.run import Run
from vizpub.runstore.journal import FILE as LOG
from vizpub.runstore.manifest import FILE
from vizpub.runstore.store import StoredRun, open_run

pytestmark = pytest.mark.spark

SECOND = 1_000_000


def rows(run: StoredRun, name: str) -> list[Row]:
    found: list[Row] = run.read(name).to_pylist()
    return found


def total(found: list[Row], name: str) -> int:
    return sum(row[name] for row in found if row[name] is not None)


def keys(run: StoredRun, name: str) -> list[str]:
    """Names by dense index."""
    return [row["name"] for row in rows(run, name)]


def ns(time: int) -> int:
    """Nanoseconds since the run's beginning."""
    return int(time - truth()["start_ns"])


SNAPSHOTS = range(11)


class TestEveryRun:
    """What holds for the tables of any run, whatever was ingested."""

    @pytest.fixture(params=["gossipsub", "old", "one", "gephi", "tiny"])
    def run(self, stored: Store, request: pytest.FixtureRequest) -> StoredRun:
        return stored(request.param)

    def test_run_is_complete_with_an_empty_quarantine(self, run: StoredRun) -> None:
        assert run.manifest.complete
        assert run.rows("quarantine") == 0

    def test_tables_conform_to_their_schema(self, run: StoredRun) -> None:
        for name in run.manifest.tables:
            check_table(run, table(name))

    def test_run_directory_holds_no_unnamed_files(self, run: StoredRun) -> None:
        named = run.manifest.directories
        views = run.directory / "views"  # further names of the same files
        files = [path for path in run.directory.rglob("*") if path.is_file()]
        files = [path for path in files if views not in path.parents]
        strange = {str(path.parent.relative_to(run.directory)) for path in files} - named - {"."}
        assert not strange
        above = {path.name for path in files if path.parent == run.directory}
        assert above == {FILE, LOG}
        assert not any(name.startswith("staged") for name in run.manifest.tables)

    def test_periods_are_maximal(self, run: StoredRun) -> None:
        for meant in TABLES:
            if "valid_from" not in meant.names:
                continue
            thing = [key for key in meant.key if key != "valid_from"]
            found = sorted(
                rows(run, meant.name), key=lambda r: [*(str(r[t]) for t in thing), r["valid_from"]]
            )
            assert all(row["valid_from"] < row["valid_to"] for row in found)
            for before, after in pairwise(found):
                same = all(before[name] == after[name] for name in thing)
                assert not same or before["valid_to"] < after["valid_from"], (
                    meant.name,
                    before,
                    after,
                )

    def test_links_and_subscriptions_lie_within_presence(self, run: StoredRun) -> None:
        stays: dict[int, list[Row]] = {}
        for row in rows(run, "presence"):
            stays.setdefault(row["peer"], []).append(row)
        for name, ends in (("links", ("src", "dst")), ("subscriptions", ("peer",))):
            for row in rows(run, name):
                for end in ends:
                    assert any(
                        stay["valid_from"] <= row["valid_from"]
                        and row["valid_to"] <= stay["valid_to"]
                        for stay in stays.get(row[end], ())
                    ), (name, row)

    def test_indices_are_dense(self, run: StoredRun) -> None:
        for name, key in (("peers", "peer"), ("topics", "topic"), ("publications", "message")):
            assert run.read(name)[key].to_pylist() == list(range(run.rows(name)))

    def test_overlay_metrics_have_a_row_per_interval(self, run: StoredRun) -> None:
        clock = run.facts.clock
        intervals = run.read("metrics/overlay")["interval"].to_pylist()
        assert intervals == list(range(clock.first, clock.last + 1))


def check_table(run: StoredRun, meant: Table) -> None:
    """Schema, counted rows, unique keys, no null where none is allowed."""
    for path in run.files(meant.name):
        written = pq.read_schema(path)
        assert written.names == meant.names
        assert written.types == meant.arrow.types
    found = run.read(meant.name)
    assert found.num_rows == run.rows(meant.name)
    for column in meant:
        if not column.nullable:
            assert found[column.name].null_count == 0, (meant.name, column.name)
    # The key of arrivals does not tell apart what came twice by one way at one time.
    if meant.name not in ("receptions", "rejections"):
        distinct = pa.TableGroupBy(found, list(meant.key)).aggregate([])
        assert distinct.num_rows == found.num_rows, meant.name


class TestGossipsub:
    """30 files of a real gossipsub network, against what its driver saw from inside."""

    def test_run_facts_are_those_of_the_trace(self, gossipsub: StoredRun) -> None:
        facts = gossipsub.facts
        assert (facts.source, facts.protocol) == ("libp2p", "gossipsub")
        assert facts.epoch == "2000-01-01T00:00:00Z"
        assert facts.clock.ticks_per_interval == facts.clock.interval_us == SECOND
        assert len(gossipsub.manifest.inputs) == 30
        assert any("bytes" in what for what in facts.unknown)

    def test_peers_topics_and_messages_equal_the_truth(self, gossipsub: StoredRun) -> None:
        assert set(keys(gossipsub, "peers")) == {node["peer_id"] for node in truth()["nodes"]}
        assert set(keys(gossipsub, "topics")) == set(truth()["topics"])
        published = {message["id_hex"] for message in truth()["messages"]}
        assert set(keys(gossipsub, "publications")) == published
        assert gossipsub.rows("publications") == 64
        assert all(row["publication_known"] for row in rows(gossipsub, "publications"))

    def test_hit_ratio_equals_the_known_value(self, gossipsub: StoredRun) -> None:
        every = rows(gossipsub, "metrics/messages")
        kept = [row for row in every if not row["rejections"]]
        assert (total(kept, "delivered"), total(kept, "eligible")) == (782, 819)
        assert (total(every, "delivered"), total(every, "eligible")) == (782, 851)
        ratios = [row["hit_ratio"] for row in kept if row["hit_ratio"] is not None]
        assert fmean(ratios) == pytest.approx(0.951306, abs=5e-7)
        assert total(every, "late_deliveries") == 2

    def test_hops_of_first_receptions_equal_the_known_counts(self, gossipsub: StoredRun) -> None:
        firsts = [row for row in rows(gossipsub, "receptions") if row["first"]]
        assert Counter(row["hop"] for row in firsts) == {1: 300, 2: 337, 3: 134, 4: 13}
        assert gossipsub.rows("receptions") == 784 + 2863
        assert gossipsub.rows("rejections") == 15

    def test_message_metrics_equal_the_truth(self, gossipsub: StoredRun) -> None:
        names = keys(gossipsub, "publications")
        measured = {names[r["message"]]: r for r in rows(gossipsub, "metrics/messages")}
        for message in truth()["messages"]:
            found = measured[message["id_hex"]]
            expected = recorded(message)
            assert {name: found[name] for name in expected} == pytest.approx(expected), message

    def test_traffic_sums_equal_the_known_numbers(self, gossipsub: StoredRun) -> None:
        sums = {
            f"{kind}_{way}": total(rows(gossipsub, "traffic"), f"{kind}_messages_{way}")
            for kind in ("control", "publication")
            for way in ("sent", "received")
        }
        assert sums == {
            "control_sent": 2_032,
            "control_received": 2_585,
            "publication_sent": 3_662,
            "publication_received": 3_662,
        }
        bytes_known = [row for row in rows(gossipsub, "traffic") if row["control_bytes_sent"]]
        assert bytes_known == []

    @pytest.mark.parametrize("which", SNAPSHOTS)
    def test_network_size_and_links_equal_the_snapshot(
        self, gossipsub: StoredRun, which: int
    ) -> None:
        snapshot = truth()["snapshots"][which]
        running = [
            node
            for node in truth()["nodes"]
            if node["joined_ns"] <= snapshot["t_ns"] < node.get("left_ns", OPEN)
        ]
        found = row_at(gossipsub, "metrics/overlay", snapshot["t_ns"])
        links = sum(map(len, snapshot["pubsub_peers"].values()))
        assert (found["network_size"], found["links"]) == (len(running), links)
        assert found["out_degree_mean"] == pytest.approx(links / len(running))
        assert found["density"] == pytest.approx(links / (len(running) * (len(running) - 1)))

    @pytest.mark.parametrize("which", SNAPSHOTS)
    def test_subscribers_of_topics_equal_the_snapshot(
        self, gossipsub: StoredRun, which: int
    ) -> None:
        snapshot = truth()["snapshots"][which]
        interval = interval_until(gossipsub, snapshot["t_ns"])
        topics = keys(gossipsub, "topics")
        found = {
            topics[row["topic"]]: row["subscribers"]
            for row in rows(gossipsub, "metrics/topics")
            if row["interval"] == interval and row["subscribers"]
        }
        assert found == {topic: len(who) for topic, who in snapshot["subscribers"].items() if who}

    @pytest.mark.parametrize("which", SNAPSHOTS)
    def test_mesh_links_equal_the_snapshot(self, gossipsub: StoredRun, which: int) -> None:
        snapshot = truth()["snapshots"][which]
        index = {node["idx"]: node["peer_id"] for node in truth()["nodes"]}
        expected = {
            (topic, index[int(src)], index[dst])
            for topic, mesh in snapshot["mesh"].items()
            for src, neighbours in mesh.items()
            for dst in neighbours
        }
        tick = ns(snapshot["t_ns"]) // 1000 - 1
        peers, topics = keys(gossipsub, "peers"), keys(gossipsub, "topics")
        alive = (
            (pc.field("valid_from") <= tick)
            & (pc.field("valid_to") > tick)
            & (pc.field("layer") == "mesh")
        )
        links = gossipsub.read("links", where=alive).to_pylist()
        assert {(topics[r["topic"]], peers[r["src"]], peers[r["dst"]]) for r in links} == expected

    def test_interval_metrics_add_up_to_the_run(self, gossipsub: StoredRun) -> None:
        overlay, topics = rows(gossipsub, "metrics/overlay"), rows(gossipsub, "metrics/topics")
        assert total(overlay, "publications") == total(topics, "publications") == 64
        assert total(overlay, "rejected_publications") == 2
        assert total(overlay, "receptions") == gossipsub.rows("receptions")
        assert total(overlay, "duplicates") == total(topics, "duplicates") == 2863
        peers = rows(gossipsub, "metrics/peers")
        assert total(peers, "receptions") == gossipsub.rows("receptions")
        assert total(peers, "control_messages_sent") == 2_032
        assert total([row for row in peers if row["present"]], "out_degree") == total(
            overlay, "links"
        )

    def test_hit_counts_of_topics_equal_the_known_numbers(self, gossipsub: StoredRun) -> None:
        topics = keys(gossipsub, "topics")
        topic_of = {row["message"]: topics[row["topic"]] for row in rows(gossipsub, "publications")}
        found: Counter[tuple[str, str]] = Counter()
        for row in rows(gossipsub, "metrics/messages"):
            if not row["rejections"]:
                for name in ("delivered", "eligible"):
                    found[topic_of[row["message"]], name] += row[name]
        assert found == {
            ("alerts", "delivered"): 48,
            ("alerts", "eligible"): 53,
            ("news", "delivered"): 495,
            ("news", "eligible"): 517,
            ("news/sport", "delivered"): 239,
            ("news/sport", "eligible"): 249,
        }


def interval_until(run: StoredRun, t_ns: int) -> int:
    """The interval that ends at a time."""
    assert run.facts.epoch is not None
    epoch = datetime.fromisoformat(run.facts.epoch)
    assert run.facts.clock.interval_us == SECOND
    return t_ns // 10**9 - int(epoch.timestamp()) - 1


def row_at(run: StoredRun, name: str, t_ns: int, **wanted: int) -> Row:
    """The row of a table in the interval that ends at a time."""
    interval = interval_until(run, t_ns)
    (found,) = [
        row
        for row in rows(run, name)
        if row["interval"] == interval and all(row[key] == wanted[key] for key in wanted)
    ]
    return found


def recorded(message: Row) -> Row:
    """A row of metrics/messages as the driver of the network recorded it."""
    deliveries = message["deliveries"]
    eligible = set(message["subscribers_at_publish"]) - {message["publisher"]}
    reached = {arrival["node"] for arrival in deliveries}
    # The trace has microseconds; both times are cut off, the epoch is a whole second.
    published = ns(message["t_ns"]) // 1000
    delays = [ns(arrival["t_ns"]) // 1000 - published for arrival in deliveries]
    hops = [arrival["hops"] for arrival in deliveries]
    duplicates = sum(message["duplicates_per_node"].values())
    receptions = len(deliveries) + duplicates
    return {
        "eligible": len(eligible),
        "delivered": len(eligible & reached),
        "hit_ratio": len(eligible & reached) / len(eligible) if eligible else None,
        "first_receptions": len(deliveries),
        "receptions": receptions,
        "duplicates": duplicates,
        "rejections": sum(sum(n.values()) for n in message.get("rejects_per_node", {}).values()),
        "hops_mean": fmean(hops) if hops else None,
        "hops_max": max(hops, default=None),
        "hops_known": len(hops) or None,
        "delay_us_mean": fmean(delays) if delays else None,
        "delay_us_p50": float(np.percentile(delays, 50)) if delays else None,
        "delay_us_p99": float(np.percentile(delays, 99)) if delays else None,
        "delay_us_max": max(delays, default=None),
        "redundancy": receptions / len(deliveries) - 1 if deliveries else None,
        "causality_violations": 0 if receptions else None,
    }


class TestOldSpelling:
    """What the official converter leaves of the same trace: whom a delivery came from is gone."""

    @pytest.fixture
    def old(self, stored: Store) -> StoredRun:
        return stored("old")

    def test_hops_are_unknown_and_the_facts_say_so(self, old: StoredRun) -> None:
        firsts = [row for row in rows(old, "receptions") if row["first"]]
        assert {row["previous_hop"] for row in firsts} == {row["hop"] for row in firsts} == {None}
        assert {row["hops_mean"] for row in rows(old, "metrics/messages")} == {None}
        assert any("hops" in what for what in old.facts.unknown)

    def test_hit_ratio_stays_as_in_the_full_trace(
        self, old: StoredRun, gossipsub: StoredRun
    ) -> None:
        kept = [row for row in rows(old, "metrics/messages") if not row["rejections"]]
        assert (total(kept, "delivered"), total(kept, "eligible")) == (782, 819)
        assert len([row for row in rows(old, "receptions") if row["first"]]) == 784
        assert old.rows("receptions") == gossipsub.rows("receptions")

    @pytest.mark.parametrize("name", ["peers", "presence", "links", "subscriptions", "topics"])
    def test_structure_table_equals_that_of_the_full_trace(
        self, old: StoredRun, gossipsub: StoredRun, name: str
    ) -> None:
        assert rows(old, name) == rows(gossipsub, name)


class TestOneNode:
    """The trace of one peer alone gives what it can."""

    @pytest.fixture
    def one(self, stored: Store) -> StoredRun:
        return stored("one")

    @pytest.fixture
    def me(self, one: StoredRun) -> int:
        (reporting,) = [row for row in rows(one, "peers") if row["is_reporter"]]
        return int(reporting["peer"])

    def test_peers_are_the_reporting_one_and_those_it_names(self, one: StoredRun, me: int) -> None:
        assert keys(one, "peers")[me] == truth()["nodes"][8]["peer_id"]
        assert one.rows("peers") > 10

    @pytest.mark.parametrize("which", SNAPSHOTS[:3])  # then it left
    def test_overlay_is_the_peer_and_its_neighbours(
        self, one: StoredRun, me: int, which: int
    ) -> None:
        snapshot = truth()["snapshots"][which]
        neighbours = snapshot["pubsub_peers"]["8"]
        found = row_at(one, "metrics/overlay", snapshot["t_ns"])
        assert (found["network_size"], found["links"]) == (len(neighbours) + 1, len(neighbours))
        mine = row_at(one, "metrics/peers", snapshot["t_ns"], peer=me)
        assert mine["subscriptions"] == sum(8 in who for who in snapshot["subscribers"].values())

    def test_metrics_only_reporters_know_are_null_for_others(self, one: StoredRun, me: int) -> None:
        others = [row for row in rows(one, "metrics/peers") if row["peer"] != me]
        assert others
        for name in ("subscriptions", "control_messages_sent", "receptions", "duplicates"):
            assert {row[name] for row in others} == {None}

    def test_receptions_of_the_peer_equal_the_recorded_deliveries(
        self, one: StoredRun, me: int
    ) -> None:
        index = keys(one, "publications")
        found = {index[row["message"]] for row in rows(one, "receptions") if row["first"]}
        assert found == {
            message["id_hex"]
            for message in truth()["messages"]
            if 8 in [arrival["node"] for arrival in message["deliveries"]]
        }
        assert {row["peer"] for row in rows(one, "receptions")} == {me}

    def test_publications_of_others_are_derived_from_arrivals(
        self, one: StoredRun, me: int
    ) -> None:
        for row in rows(one, "publications"):
            assert row["publication_known"] == (row["publisher"] == me)
            assert (row["time_us"] is not None) == row["publication_known"]


class TestGephi:
    """An edge list through the whole pipeline against the figures of Gephi's own toolkit."""

    @pytest.fixture
    def expected(self) -> list[Row]:
        text = gzip.decompress((GEPHI / "gephi_metrics.json.gz").read_bytes())
        intervals: list[Row] = json.loads(text)["intervals"]
        return intervals

    @pytest.fixture
    def run(self, stored: Store) -> StoredRun:
        return stored("gephi")

    def test_overlay_metrics_of_each_interval_equal_gephi(
        self, run: StoredRun, expected: list[Row]
    ) -> None:
        found = rows(run, "metrics/overlay")
        assert len(found) == len(expected) == 50
        for row, gephi in zip(found, expected, strict=True):
            n = row["network_size"]
            assert {
                "t": row["interval"],
                "nodes": n,
                "edges": row["links"],
                "diameter": row["diameter"],
                "path_length": row["average_path_length"],
                "avg_degree": row["out_degree_mean"],
                "density": row["density"],
                "wcc": row["weak_components"],
                "scc": row["strong_components"],
                "giant": round(row["largest_weak_component_share"] * n),
                "avg_clustering_undirected": row["clustering_mean"],
                "sum_betweenness": row["betweenness_mean"] * n,
                "sum_eccentricity": row["eccentricity_mean"] * n,
                # All are reached here, so Gephi's closeness is ours.
                "sum_closeness": row["closeness_mean"] * n,
            } == pytest.approx(
                {name: gephi[name] for name in gephi if name in _OVERLAY_FIGURES}, rel=1e-9
            )

    @pytest.mark.parametrize("interval", [0, 25, 49])
    def test_peer_metrics_equal_gephi(
        self, run: StoredRun, expected: list[Row], interval: int
    ) -> None:
        names = [int(key) for key in keys(run, "peers")]
        found = run.read("metrics/peers", where=pc.field("interval") == interval).to_pylist()
        gephi = expected[interval]
        assert [names[row["peer"]] for row in found] == gephi["peer"]
        for name, theirs in _PEER_FIGURES.items():
            mine = [row[name] for row in found]
            np.testing.assert_allclose(mine, gephi[theirs], rtol=1e-9, err_msg=name)

    def test_metrics_beyond_an_edge_list_are_unknown(self, run: StoredRun) -> None:
        for name in ("hit_ratio", "publications", "receptions", "control_messages_sent_mean"):
            assert run.read("metrics/overlay")[name].null_count == 50
        assert run.read("metrics/peers")["subscriptions"].null_count == 10_000
        assert not run.has("receptions")
        assert set(run.facts.unknown) >= {"topics", "traffic", "messages"}


_OVERLAY_FIGURES = {
    *(
        "t",
        "nodes",
        "edges",
        "diameter",
        "path_length",
        "avg_degree",
        "density",
        "wcc",
        "scc",
    ),
    *("giant", "avg_clustering_undirected", "sum_betweenness", "sum_eccentricity", "sum_closeness"),
}
_PEER_FIGURES = {
    "in_degree": "in_degree",
    "out_degree": "out_degree",
    "betweenness": "betweenness",
    "closeness": "closeness",
    "eccentricity": "eccentricity",
    "clustering": "clustering_undirected",
}


@dataclass(frozen=True)
class Again:
    """A workspace with a run of tiny.csv, and what each further ingest into it told."""

    workspace: Path
    told: dict[str, IngestOutcome | VizpubError]
    """By what was ingested."""

    def outcome(self, of: str) -> IngestOutcome:
        told = self.told[of]
        assert isinstance(told, IngestOutcome), told
        return told

    def error(self, of: str) -> VizpubError:
        told = self.told[of]
        assert isinstance(told, VizpubError), told
        return told


@pytest.fixture(scope="module")
def again(stored: Store, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Again:
    folder = tmp_path_factory.mktemp("again")
    copied(stored("tiny"), folder / "ws")
    texts = {
        "elsewhere": TINY.read_text(),
        "other": TINY.read_text() + "3,a,b\n",
        "bad": "interval,src,dst\nnever,a,b\n",
        "mostly bad": "interval,src,dst\nnever,a,b\n0,a,b\n0,,b\nnever,b,c\n",
    }
    for place, text in texts.items():
        (folder / place).mkdir()
        (folder / place / TINY.name).write_text(text)

    neighbors = [{"peer": "b", "layer": "rings"}]
    report = {"format": "vizpub.report/1", "peer": "a", "interval": 0, "neighbors": neighbors}
    (folder / "reports.ndjson").write_text(json.dumps(report) + "\n")

    def request(place: str, **choices: Any) -> IngestRequest:
        return IngestRequest((str(folder / place / TINY.name),), "tiny", folder / "ws", **choices)

    def told(request: IngestRequest) -> IngestOutcome | VizpubError:
        try:
            return ingested(spark, request)
        except VizpubError as error:
            return error

    asked = {
        "again": request("elsewhere"),
        "other options": request(
            "elsewhere",
            options=SourceOptions(interval_us=5),
            measuring=MeasurementOptions(("overlay",)),
        ),
        "other content": request("other"),
        "replaced": request("other", replace=True),
        "nothing good": request("bad", replace=True),
        "mostly refused": request("mostly bad", replace=True),
        "going on": replace(request("mostly bad", keep_going=True), run="going-on"),
        "no such layer": IngestRequest(
            (str(folder / "reports.ndjson"),),
            "new",
            folder / "ws",
            measuring=MeasurementOptions(("rng",)),
        ),
    }
    answers = {name: told(request) for name, request in asked.items()}
    answers["settled"] = told(settling_request(open_run(folder / "ws", "going-on")))
    return Again(folder / "ws", answers)


class TestAgain:
    """A run of that name is there already."""

    def test_input_moved_elsewhere_is_already_complete(self, again: Again) -> None:
        outcome = again.outcome("again")
        assert outcome.already_complete
        assert outcome.run.manifest.complete

    @pytest.mark.parametrize(
        ("case", "words"),
        [
            (
                "other options",
                [
                    "--interval: the default then, 5us now",
                    "--layers: the default then, overlay now",
                ],
            ),
            ("other content", ["1 file new or changed, 1 gone"]),
        ],
    )
    def test_other_input_or_options_are_refused_with_the_difference(
        self, again: Again, case: str, words: list[str]
    ) -> None:
        error = again.error(case)
        assert isinstance(error, InputsDiffer)
        assert all(word in str(error) for word in [*words, "--replace"])

    def test_replaced_run_is_the_new_one(self, again: Again) -> None:
        outcome = again.outcome("replaced")
        assert not outcome.already_complete
        assert outcome.run.manifest.complete
        assert open_run(again.workspace, "tiny").facts.clock.last == 3

    def test_run_of_mostly_refused_records_fails_with_the_reasons(self, again: Again) -> None:
        told = str(again.error("mostly refused"))
        tells(told, "3 of 4", "'interval'", "(2)", "'src'", "(1)", "--keep-going")
        assert open_run(again.workspace, "tiny").rows("quarantine") == 0

    def test_rest_of_mostly_refused_records_is_taken_where_asked_for(self, again: Again) -> None:
        for case in ("going on", "settled"):
            run = again.outcome(case).run
            assert (run.rows("links"), run.rows("quarantine")) == (1, 3), case

    def test_run_with_a_layer_of_no_link_gives_way(self, again: Again) -> None:
        tells(str(again.error("no such layer")), unknown("layer", "rng", "rings"))
        assert not (again.workspace / "runs/new").exists()

    def test_run_stays_if_its_replacement_has_no_good_record(self, again: Again) -> None:
        assert isinstance(again.error("nothing good"), InputError)
        run = open_run(again.workspace, "tiny")
        assert (run.facts.clock.last, run.rows("quarantine")) == (3, 0)


def test_interest_in_the_interval_in_which_a_subscriber_leaves_is_as_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What `says` got before it left it was subscribed to; of `mute` that is not known."""

    def report(peer: str, interval: int, message: str = "", **fields: Any) -> Row:
        state = {} if fields.get("left") else {"topics": ["t"]}
        words = {"subscribed": True} if peer == "says" else {}
        copy = {"message": message, "topic": "t", "from": "a", **words}
        told = {"format": "vizpub.report/1", "peer": peer, "interval": interval, **state, **fields}
        return {**told, "received": [copy] if message else []}

    sent = [{"message": m, "topic": "t", "publisher": "a", "hops": 0} for m in ("one", "two")]
    lines = [report("a", 0), report("says", 0), report("mute", 0)]
    lines += [report("a", 1, sent=sent), report("stays", 1, "two"), report("a", 2)]
    lines += [report("says", 1, "one", left=True), report("mute", 1, "two", left=True)]
    lines += [report("stays", 2, "one")]
    path = tmp_path / "reports.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    request = IngestRequest((str(path),), "told", tmp_path / "ws")
    run = ingested(spark, request).run
    peer, message = keys(run, "peers"), keys(run, "publications")
    assert {
        (message[row["message"]], peer[row["peer"]], row["subscribed"])
        for row in rows(run, "receptions")
    } == {
        ("one", "says", True),
        ("one", "stays", True),
        ("two", "mute", None),
        ("two", "stays", None),  # it came in that interval
    }
    found = {message[row["message"]]: row for row in rows(run, "metrics/messages")}
    assert {of: row["relay_receptions"] for of, row in found.items()} == {"one": 0, "two": None}
    of_topic = [row["relay_receptions"] for row in rows(run, "metrics/topics")]
    assert of_topic == [0, None, 0]


def test_link_of_a_peer_to_itself_is_none_in_all_outputs(
    spark: SparkSession, tmp_path: Path
) -> None:
    neighbours: dict[str, list[object]] = {
        "a": ["a", "b", "b", {"peer": "b", "layer": "overlay"}],
        "b": ["a", "c"],
        "c": ["c"],
    }
    path = tmp_path / "loops.ndjson"
    lines = [
        {"format": "vizpub.report/1", "peer": peer, "interval": 0, "neighbors": found}
        for peer, found in neighbours.items()
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = Run(ingested(spark, IngestRequest((str(path),), "loops", tmp_path / "ws")).run)
    assert run.stored.rows("links") == 3
    assert run.metrics("overlay", ["links"]).to_pylist() == [{"interval": 0, "links": 3}]
    graph = run.overlay(0).to_networkx(multi=True)
    assert sorted(graph.edges()) == [("a", "b"), ("b", "a"), ("b", "c")]


def test_file_that_goes_while_it_is_read_is_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was inspected, and is not there when Spark reads it."""
    path = tmp_path / "edges.csv"
    path.write_text("interval,src,dst\n0,a,b\n")

    def removed(job: Job) -> None:
        path.unlink()
        fold_input(job)

    monkeypatch.setattr(stages, "fold_input", removed)
    with pytest.raises(InputError, match=naming(f"{path} {CHANGED}")) as told:
        ingested(spark, IngestRequest((str(path),), "gone", tmp_path / "ws"))
    assert told.value.exit_code == 2
