"""VizPub's report directories → tables of a run, against what is known of the directories."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from tests.support.ingested import Store
from tests.support.staged import Staged, Taken, staged
from tests.support.words import naming, tells
from vizpub.ingest.inputs.files import NO_FILES_IN, find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.ingest.sources.base import RunDescription, SourceOptions
from vizpub.ingest.sources.reports.facts import NO_REPORT, ReportTally
from vizpub.ingest.sources.vizpub.source import Vizpub
from vizpub.model.clock import OPEN, Clock
from vizpub.model.columns import TRAFFIC_COLUMNS
from vizpub.model.errors import InputError, UnknownName, UseError
from vizpub.questions.names import NamedRun
from vizpub.questions.sums.tracestat import Tracestat, totals
from vizpub.runstore.store import StoredRun

DEMO = Path(__file__).parents[1] / "data/vizpub"
BIG = "170141183460469231731687303715884105727"
OURS = ("control_messages_sent", "control_messages_received", "control_bytes_sent", "duplicates")
Row = dict[str, Any]
Outside = Callable[[str], Path]


def stage(*paths: Path, **options: Any) -> Staged:
    """As the pipeline does: look at the paths, read and fold what is there."""
    found = take_inventory(None, find_files([str(path) for path in paths]), SOURCES)
    assert found.source == "vizpub"
    return staged(Vizpub(), found.files, SourceOptions(**options))


def take(*paths: Path, **options: Any) -> Taken:
    return Taken(Vizpub(), stage(*paths, **options), SourceOptions(**options))


def describe(found: Staged, **options: Any) -> RunDescription:
    return Vizpub().describe(found.counted, SourceOptions(**options))


def table(run: StoredRun, name: str) -> list[Row]:
    """The rows, with keys instead of indices."""
    keys = {
        kind: {row[kind]: row["name"] for row in run.read(f"{kind}s").to_pylist()}
        for kind in ("peer", "topic")
    }
    kinds = dict.fromkeys(("peer", "src", "dst", "publisher", "previous_hop"), "peer")
    kinds["topic"] = "topic"
    rows: list[Row] = run.read(name).to_pylist()
    return [{c: keys[kinds[c]].get(v) if c in kinds else v for c, v in r.items()} for r in rows]


def reporting(run: StoredRun) -> set[str]:
    return {row["name"] for row in run.read("peers").to_pylist() if row["is_reporter"]}


def folder(outside_data: Outside, name: str) -> Path:
    return outside_data("vizpub_small") / name


def reports(path: Path) -> dict[int, dict[str, Row]]:
    """Nodes by checkpoint and id, of one host."""
    told = (json.loads(file.read_bytes()) for file in path.glob("reports/*/*/*.json"))
    return {report["intervalCount"]: report["nodes"] for report in told}


def facts(path: Path) -> list[dict[str, float]]:
    with open(path / "facts.csv") as file:
        rows = csv.DictReader(file, delimiter=";")
        return [{name: float(value) for name, value in row.items()} for row in rows]


@pytest.fixture(scope="module")
def demo(stored: Store) -> StoredRun:
    return stored("vizpub-demo", DEMO)


@pytest.fixture(scope="module")
def pubsub(stored: Store, outside_data: Outside) -> StoredRun:
    return stored("vizpub-pubsub", folder(outside_data, "pubsub"))


@pytest.fixture(scope="module")
def pastry(stored: Store, outside_data: Outside) -> StoredRun:
    return stored("vizpub-pastry", folder(outside_data, "pastry"))


class TestDemo:
    """Our own few reports; see their README."""

    def test_description_has_protocol_clock_and_unknowns(self, demo: StoredRun) -> None:
        told = demo.manifest
        assert (told.protocol, told.clock) == ("protocol.demo", Clock(1, None, 0, 3))
        assert told.unknown == ("roles", "rpcs", "publication.bytes", "duplicates of a message")
        assert told.notes == {}
        assert told.tables["quarantine"].rows == 0

    def test_peers_and_presence_are_as_reported(self, demo: StoredRun) -> None:
        assert {(row["name"], row["is_reporter"]) for row in demo.read("peers").to_pylist()} == {
            (key, True) for key in ("2", "3", "4", "5", BIG)
        }
        assert {(r["peer"], r["valid_from"], r["valid_to"]) for r in table(demo, "presence")} == {
            *((peer, 0, OPEN) for peer in ("2", "3", BIG)),
            *(("4", 0, 1), ("4", 2, OPEN), ("5", 1, 3)),
        }

    def test_links_and_dangling_links_are_as_reported(self, demo: StoredRun) -> None:
        span = ("src", "dst", "layer", "topic", "valid_from", "valid_to")
        found = {tuple(row[name] for name in span) for row in table(demo, "links")}
        assert found == {
            (src, dst, "overlay", None, valid_from, valid_to)
            for src, dst, valid_from, valid_to in (
                *((BIG, "2", 0, OPEN), (BIG, "3", 1, 2), ("2", "3", 0, OPEN), ("3", "2", 1, 2)),
                *(("3", "4", 0, 1), ("3", "4", 2, OPEN), ("3", "5", 2, 3), ("5", "3", 1, 3)),
                *(("4", BIG, 0, 1), ("4", BIG, 2, OPEN)),
            )
        }
        found = {tuple(row[name] for name in span) for row in table(demo, "dangling_links")}
        assert found == {
            ("3", "4", "overlay", None, 1, 2),
            ("3", "5", "overlay", None, 3, OPEN),
        }

    def test_subscriptions_are_as_reported(self, demo: StoredRun) -> None:
        found = {
            (r["peer"], r["topic"], r["valid_from"], r["valid_to"])
            for r in table(demo, "subscriptions")
        }
        assert found == {
            *((peer, "t", 0, OPEN) for peer in ("2", "3", BIG)),
            *(("3", "u", 0, 3), ("4", "u", 0, 1), ("4", "u", 2, OPEN), ("5", "t", 1, 3)),
        }

    def test_counters_are_differences_of_totals(self, demo: StoredRun) -> None:
        found: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        for row in sorted(table(demo, "traffic"), key=lambda row: row["interval"]):
            found[row["peer"]].append(tuple(row[name] for name in OURS))
        assert found == {
            BIG: [(0, 0, 0, 0), (3, 2, 300, 0), (2, 3, 200, 0), (1, 1, 100, 0)],
            "2": [(0, 0, 0, 0), (4, 4, 400, 0), (1, 2, 100, 0), (2, 1, 200, 0)],  # restarted
            "3": [(0, 0, 0, 0), (2, 3, 200, 1), (4, 3, 400, 0), (2, 2, 200, 0)],
            "4": [(0, 0, 0, 0), (7, 7, 700, 0), (2, 2, 200, 0)],
            "5": [(1, 1, 100, 0), (1, 1, 100, 0)],
        }

    def test_publication_counters_count_copies(self, demo: StoredRun) -> None:
        ways = [f"publication_messages_{way}" for way in ("sent", "received")]
        found = {
            (row["peer"], row["interval"]): tuple(row[way] for way in ways)
            for row in table(demo, "traffic")
            if any(row[way] for way in ways)
        }
        assert found == {
            **{(BIG, 1): (2, 0), ("2", 1): (1, 1), ("3", 1): (0, 2)},
            **{("3", 2): (2, 0), ("4", 2): (0, 1), ("5", 2): (0, 1)},
            **{(BIG, 3): (0, 1), ("2", 3): (0, 1)},
        }
        assert {row["publication_bytes_sent"] for row in table(demo, "traffic")} == {None}

    def test_publications_are_as_reported(self, demo: StoredRun) -> None:
        names = ("name", "topic", "publisher", "interval", "publication_known")
        assert {tuple(row[n] for n in names) for row in table(demo, "publications")} == {
            ("m0", "t", BIG, 1, True),
            ("m1", "u", "3", 2, True),
            ("m2", "t", "5", 3, False),
        }

    def test_message_metrics_equal_the_known_values(self, demo: StoredRun) -> None:
        """Only first arrivals are listed."""
        names = ("eligible", "delivered", "delivered_in_interval", "first_receptions", "hops_max")
        found = {row["message"]: tuple(row[n] for n in names) for row in messages(demo).values()}
        keys = {row["message"]: row["name"] for row in demo.read("publications").to_pylist()}
        assert {keys[message]: values for message, values in found.items()} == {
            "m0": (3, 3, 2, 3, 2),
            "m1": (1, 1, 1, 1, 1),
            "m2": (None, None, None, 2, 1),
        }
        assert {row["receptions"] for row in messages(demo).values()} == {None}

    def test_receptions_are_the_listed_arrivals_and_the_counted_duplicates(
        self, demo: StoredRun
    ) -> None:
        listed = Counter((row["peer"], row["interval"]) for row in table(demo, "receptions"))
        counted = [row for row in table(demo, "metrics/peers") if row["receptions"] is not None]
        assert sum(row["duplicates"] for row in counted) > 0
        assert all(
            row["receptions"] == listed[row["peer"], row["interval"]] + row["duplicates"]
            for row in counted
        )
        overlay = table(demo, "metrics/overlay")
        assert sum(row["receptions"] for row in overlay) == sum(r["receptions"] for r in counted)

    def test_summary_has_the_duplicates_that_peers_counted(self, demo: StoredRun) -> None:
        summary = Tracestat(NamedRun(demo))
        found = {row["peer"]: row["duplicates"] for row in summary.per_peer()}
        counted = Counter[str]()
        for row in demo.read("traffic").to_pylist():
            counted[demo.read("peers")["name"].to_pylist()[row["peer"]]] += row["duplicates"]
        assert found == counted
        overlay = table(demo, "metrics/overlay")
        every = sum(row["duplicates"] or 0 for row in overlay)
        assert totals(summary.per_peer())["duplicates"] == every > 0
        (topic, *_) = NamedRun(demo).topics
        assert totals(Tracestat(NamedRun(demo), topic).per_peer())["duplicates"] is None


def messages(run: StoredRun) -> dict[str, Row]:
    """metrics/messages with publications, by the message's key."""
    measured = {row["message"]: row for row in run.read("metrics/messages").to_pylist()}
    return {row["name"]: {**row, **measured[row["message"]]} for row in table(run, "publications")}


@pytest.fixture(scope="module", params=["pastry", "pubsub"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(name: str, request: pytest.FixtureRequest) -> StoredRun:
    found: StoredRun = request.getfixturevalue(name)
    return found


@pytest.fixture(scope="module")
def told(name: str, outside_data: Outside) -> list[dict[str, float]]:
    return facts(folder(outside_data, name))


class TestFacts:
    """facts.csv, which networkx made of the same files."""

    def test_overlay_metrics_equal_networkx_facts(
        self, run: StoredRun, told: list[dict[str, float]]
    ) -> None:
        overlay = sorted(run.read("metrics/overlay").to_pylist(), key=lambda r: r["interval"])
        assert len(overlay) == len(told)
        for row, expected in zip(overlay, told, strict=True):
            n, links, dangling = row["network_size"], row["links"], row["dangling_links"]
            ours = {
                "interval": row["interval"],
                "nodes": n,
                "neighbour_refs": links + dangling,
                "edges_to_reporting_nodes": links,
                "dangling_refs": dangling,
                "avg_out_degree": row["out_degree_mean"],
                "avg_undirected_degree": row["degree_mean"],
                "avg_clustering_undirected": row["clustering_mean"],
                "scc": row["strong_components"],
                "wcc": row["weak_components"],
                "largest_wcc": row["largest_weak_component_share"] * n,
                "avg_path_directed_reachable_pairs": row["average_path_length"],
                "reachable_ordered_pairs": row["reachable_pairs_share"] * n * (n - 1),
            }
            same = {fact: expected[fact] for fact in ours}
            assert ours == pytest.approx(same, abs=5.1e-7)

    def test_undirected_diameter_of_links_equals_the_facts(
        self, run: StoredRun, told: list[dict[str, float]]
    ) -> None:
        """Ours in metrics/overlay follows directions; this one is of the rows of `links`."""
        links, stays = table(run, "links"), table(run, "presence")
        for expected in told:
            at = expected["interval"]
            graph: nx.Graph[str] = nx.Graph()
            graph.add_nodes_from(
                row["peer"] for row in stays if row["valid_from"] <= at < row["valid_to"]
            )
            graph.add_edges_from(
                (row["src"], row["dst"])
                for row in links
                if row["valid_from"] <= at < row["valid_to"]
            )
            largest = max(nx.connected_components(graph), key=len)
            assert nx.diameter(graph.subgraph(largest)) == expected["diameter_undirected_largest"]

    def test_peers_and_links_of_the_run_have_known_counts(self, name: str, run: StoredRun) -> None:
        peers, links = {"pastry": (77, 1170), "pubsub": (67, 2549)}[name]
        assert len(reporting(run)) == peers
        assert len({(row["src"], row["dst"]) for row in table(run, "links")}) == links


class TestPubsub:
    def test_counters_add_up_to_the_totals(self, pubsub: StoredRun, outside_data: Outside) -> None:
        path = folder(outside_data, "pubsub")
        told = {row["interval"]: row for row in facts(path)}
        names = {
            **{"control_messages_sent": "ctl_sent", "control_messages_received": "ctl_rcvd"},
            **{"control_bytes_sent": "bytes_sent", "control_bytes_received": "bytes_rcvd"},
            "duplicates": "dup_total",
        }
        so_far: Counter[tuple[str, str]] = Counter()
        rows = table(pubsub, "traffic")
        for at, nodes in sorted(reports(path).items()):
            for row in (row for row in rows if row["interval"] == at):
                so_far.update({(row["peer"], name): row[name] for name in names})
            sums = {fact: sum(so_far[peer, n] for peer in nodes) for n, fact in names.items()}
            assert sums == {fact: told[at][fact] for fact in sums}

    def test_message_counts_by_interval_equal_the_facts(
        self, pubsub: StoredRun, outside_data: Outside
    ) -> None:
        path = folder(outside_data, "pubsub")
        arrived = Counter(row["interval"] for row in table(pubsub, "receptions"))
        copies, received = Counter[int](), Counter[int]()
        for row in table(pubsub, "traffic"):
            copies[row["interval"]] += row["publication_messages_sent"]
            received[row["interval"]] += row["publication_messages_received"] - row["duplicates"]
        for at, told in enumerate(facts(path)):
            sent = [
                entry["destinationIds"]
                for node in reports(path)[at].values()
                for entry in node["publicationMsgsSent"].values()
            ]
            assert len(sent) == told["sent_entries"]
            assert copies[at] == sum(map(len, sent))
            assert arrived[at] == received[at] == told["rcvd_entries"]

    def test_sent_entries_of_records_equal_the_facts(self, outside_data: Outside) -> None:
        """`publications` is what the nodes sent, once a message: nothing is lost without it."""
        path = folder(outside_data, "pubsub")
        sent, different = Counter[int](), defaultdict(set)
        for record in stage(path).records:
            sent[record["interval"]] += len(record["sent"])
            different[record["interval"]] |= {copy["message"] for copy in record["sent"]}
        for at, told in enumerate(facts(path)):
            found = (sent[at], len(different[at]))
            assert found == (told["sent_entries"], told["pub_map_size"])

    def test_hops_and_previous_hops_equal_the_truth(
        self, pubsub: StoredRun, outside_data: Outside
    ) -> None:
        truth = recorded(outside_data)
        keys = {row["message"]: row["name"] for row in pubsub.read("publications").to_pylist()}
        rows = table(pubsub, "receptions")
        for row in rows:
            expected = truth[keys[row["message"]]]["first_deliveries"][row["peer"]]
            assert (row["hop"], row["previous_hop"]) == (expected["hops"], str(expected["from"]))
            assert row["first"]
        assert len(rows) == 1986

    def test_message_listed_in_two_intervals_is_published_in_one(
        self, pubsub: StoredRun, outside_data: Outside
    ) -> None:
        """VizPub's `publications` of an interval are the messages forwarded in it."""
        step_ms = 2000
        truth = recorded(outside_data)
        known = {k: m for k, m in messages(pubsub).items() if m["publication_known"]}
        assert len(known) == 69
        for key, message in known.items():
            # A report at the end of an interval covers the time since the one before it.
            assert message["interval"] == -(-truth[key]["time_ms"] // step_ms)
            assert message["publisher"] == str(truth[key]["publisher"])


def recorded(outside_data: Outside) -> dict[str, Row]:
    """truth.json.gz by message, ids as strings, first deliveries by node."""
    path = folder(outside_data, "pubsub") / "truth.json.gz"
    told = json.loads(gzip.decompress(path.read_bytes()))["messages"]
    return {
        row["msgId"]: {
            **row,
            "first_deliveries": {str(d["node"]): d for d in row["first_deliveries"]},
            "subscribers": {str(peer) for peer in row["subscribers_at_publish"]}
            - {str(row["publisher"])},
        }
        for row in told
    }


@pytest.fixture(scope="module")
def truth(outside_data: Outside) -> dict[str, Row]:
    return recorded(outside_data)


@pytest.fixture(scope="module")
def arrived(pubsub: StoredRun) -> dict[str, set[str]]:
    """The peers at which each message arrived, by the tables."""
    keys = {row["message"]: row["name"] for row in pubsub.read("publications").to_pylist()}
    found: dict[str, set[str]] = defaultdict(set)
    for row in table(pubsub, "receptions"):
        found[keys[row["message"]]].add(row["peer"])
    return found


class TestDeliveries:
    """Four hit ratios of one run, and how they come out of each other."""

    def test_truth_has_the_known_hit_count(self, truth: dict[str, Row]) -> None:
        """Subscribers that were up at the instant of publication; all that arrived anywhere."""
        delivered = sum(
            len(m["subscribers"] & m["first_deliveries"].keys()) for m in truth.values()
        )
        assert (delivered, sum(len(m["subscribers"]) for m in truth.values())) == (2085, 2329)

    def test_reported_arrivals_at_subscribers_have_the_known_count(
        self, truth: dict[str, Row], arrived: dict[str, set[str]]
    ) -> None:
        """The same subscribers; arrivals at nodes that were down at every later report are lost."""
        assert sum(len(m["subscribers"] & arrived[key]) for key, m in truth.items()) == 1984

    def test_hit_counts_of_the_metrics_have_the_known_values(self, pubsub: StoredRun) -> None:
        """Subscribers that report at the end of the interval of publication."""
        found = messages(pubsub).values()
        assert pooled(m for m in found if m["publication_known"]) == (1967, 2252)
        # Its publisher never reported again: who was to get it is not known.
        assert [m["eligible"] for m in found if not m["publication_known"]] == [None]

    def test_eligible_peers_of_metrics_and_truth_are_reconciled(
        self, pubsub: StoredRun, truth: dict[str, Row], outside_data: Outside
    ) -> None:
        found, told = messages(pubsub), reports(folder(outside_data, "pubsub"))
        unseen = truth.keys() - found.keys()
        unknown = {key for key, m in found.items() if not m["publication_known"]}
        # Three messages are in no report, one lacks its publication.
        assert (len(unseen), len(unknown)) == (3, 1)
        assert sum(len(truth[key]["subscribers"]) for key in unseen) == 66
        assert sum(len(truth[key]["subscribers"]) for key in unknown) == 19
        gone = come = 0
        for key in found.keys() - unknown:
            message, then = found[key], truth[key]["subscribers"]
            at_the_end = {
                peer
                for peer, node in told[message["interval"]].items()
                if message["topic"] in node["topics"] and peer != message["publisher"]
            }
            assert message["eligible"] == len(at_the_end)
            gone, come = gone + len(then - at_the_end), come + len(at_the_end - then)
        # From the publication to the end of its interval some left and others came.
        assert (gone, come) == (8, 16)
        assert 2329 - 66 - 19 - gone + come == 2252


def pooled(rows: Any) -> tuple[int, int]:
    pairs = [(row["delivered"], row["eligible"]) for row in rows]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


class TestPastry:
    """MS-Pastry's adapter reports neighbours alone."""

    def test_tables_of_absent_fields_are_unknown(self, pastry: StoredRun) -> None:
        unknown = {"traffic", "subscriptions", "roles", "publications", "receptions"}
        assert unknown & pastry.manifest.tables.keys() == set()
        assert {"topics", "sent", "received"} <= set(pastry.manifest.unknown)

    def test_counters_always_zero_are_unknown(self, pastry: StoredRun) -> None:
        """Every one of them is 0 in every report; a Java int cannot be left out."""
        told = {"control.messages", "control.bytes", "publication.messages", "duplicates"}
        assert told <= set(pastry.manifest.unknown)
        for row in pastry.read("metrics/peers").to_pylist():
            assert {row[name] for name in (*TRAFFIC_COLUMNS, "duplicates")} == {None}
            assert row["subscriptions"] is None

    def test_peer_keys_are_as_written(self, pastry: StoredRun, outside_data: Outside) -> None:
        keys = {key for nodes in reports(folder(outside_data, "pastry")).values() for key in nodes}
        assert reporting(pastry) == keys
        assert max(map(len, keys)) > 38


@pytest.fixture(scope="module")
def two_hosts(outside_data: Outside) -> Path:
    return folder(outside_data, "pubsub_two_hosts")


class TestTwoHosts:
    """One checkpoint is in two files, below reports/unprocessed; a host's seventh is missing."""

    def test_files_of_two_hosts_make_one_interval(
        self, two_hosts: Path, outside_data: Outside
    ) -> None:
        seen = take(two_hosts)
        expected = reports(folder(outside_data, "pubsub"))
        expected[7] = {peer: n for peer, n in expected[7].items() if int(peer) % 2 == 0}
        assert at_each(
            seen.rows("presence", "peer", "valid_from", "valid_to"), seen.told.clock
        ) == {at: {(peer,) for peer in nodes} for at, nodes in expected.items()}
        links = seen.rows("links", "src", "dst", "valid_from", "valid_to")
        assert at_each(links, seen.told.clock) == {
            at: {(peer, other) for peer, node in nodes.items() for other in node["neighbors"]}
            for at, nodes in expected.items()
        }
        assert seen.told.unknown == (
            "roles",
            "rpcs",
            "publication.bytes",
            "duplicates of a message",
        )

    def test_missing_report_is_bridged_by_gap_tolerance(
        self, two_hosts: Path, outside_data: Outside
    ) -> None:
        """Peers are there that are before and after; traffic and what arrived stay unknown."""
        seen = take(two_hosts, gap_tolerance=1)
        whole = reports(folder(outside_data, "pubsub"))
        odd = {peer for peer in whole[6].keys() & whole[8].keys() if int(peer) % 2}
        present = at_each(seen.rows("presence", "peer", "valid_from", "valid_to"), seen.told.clock)
        assert present[7] == {(peer,) for peer in odd | {p for p in whole[7] if int(p) % 2 == 0}}
        links = at_each(seen.rows("links", "src", "dst", "valid_from", "valid_to"), seen.told.clock)
        assert {link for link in links[7] if link[0] in odd} == {
            (peer, other)
            for peer in odd
            for other in {*whole[6][peer]["neighbors"]} & {*whole[8][peer]["neighbors"]}
        }
        assert odd.isdisjoint(
            peer for peer, at in seen.rows("traffic", "peer", "interval") if at == 7
        )
        assert {(peer, 7) for peer in odd} <= seen.rows("unreported", "peer", "interval")


def at_each(spans: set[tuple[Any, ...]], clock: Clock) -> dict[int, set[tuple[Any, ...]]]:
    """What is there in each interval. Spans end with valid_from, valid_to."""
    return {
        at: {span[:-2] for span in spans if span[-2] <= at < span[-1]}
        for at in range(clock.first, clock.last + 1)
    }


class Desk:
    """A reports directory to write into, as VizPub lays it out."""

    def __init__(self, path: Path, protocol: str = "protocol.p") -> None:
        self.path, self.protocol = path, protocol

    def write(self, checkpoint: int, *nodes: Row, **changes: Any) -> Path:
        told = {
            "protocolId": 1,
            "protocolName": self.protocol,
            "intervalCount": checkpoint,
            "nodes": {node["id"]: node for node in nodes},
            "edges": {},
            "publications": {},
            **changes,
        }
        return self.write_text(checkpoint, json.dumps(told), told["protocolName"])

    def write_text(self, checkpoint: int, text: str, protocol: str = "") -> Path:
        protocol = protocol or self.protocol
        folder = self.path / "processed" / protocol
        folder.mkdir(parents=True, exist_ok=True)
        (self.path / "unprocessed" / protocol / f"{checkpoint:08d}").mkdir(parents=True)
        path = folder / f"{checkpoint:08d}_localhost_{protocol}.json"
        path.write_text(text)
        return path


def node(id: str, **fields: Any) -> Row:
    counters = ("controlMsgsReceived", "bitsSent", "bitsReceived", "duplicateCount")
    return {
        "id": id,
        "neighbors": [],
        "subscriptionSize": 0,
        "controlMsgsSent": 0,
        **dict.fromkeys(counters, 0),
        **fields,
    }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "reports")


def quarantine(found: Staged) -> list[tuple[str, int, str]]:
    return [(name[:8], line, reason) for name, line, reason, _ in found.quarantine]


def write_refused(desk: Desk) -> None:
    good, late = node("1", neighbors=["2"]), {"msgId": "m", "hopCount": 1}
    desk.write(0, good, node("2"))
    desk.write_text(1, f'{{"protocolName": "{desk.protocol}", "interv')
    desk.write_text(2, json.dumps({"protocolName": desk.protocol, "intervalCount": 2}))
    desk.write(3, nodes=[good])
    desk.write(4, intervalCount=-4)
    desk.write(5, good, node("2", controlMsgsSent=-1), node("3", neighbors="1"))
    desk.write(6, {"id": "2"}, good, nodes={"1": good, "2": {"id": "2"}, "3": node("4"), "5": 5})
    desk.write(7, good, node("2", publicationMsgsReceived={"n": late}))
    desk.write(8, node("2", publicationMsgsReceived={"m": late}, colour="red"), size=3)
    half = chr(0xD800)
    odd = desk.write(9, good, node("4", x=0))
    odd.write_text(odd.read_text().replace('"x": 0', '"x": ' + "[" * 2000 + "]" * 2000))
    desk.write(10, good, node("2", neighbors=[half]), node("3", **{half: 1}), node("4", size=half))


def write_packed(desk: Desk) -> None:
    packed, strange, spread = (desk.write(i, node(str(i))) for i in range(3))
    content = packed.read_bytes()
    (desk.path / "a.json.gz").write_bytes(gzip.compress(content))
    packed.unlink()
    strange.rename(strange.with_name("1:{a}*[b] +.json"))
    spread.write_text(json.dumps(json.loads(spread.read_bytes()), indent=2))
    cut = spread.with_name(f"00000003_localhost_{desk.protocol}.json.gz")
    cut.write_bytes(gzip.compress(content * 1000)[:-9])


def write_twice(desk: Desk) -> None:
    """By two hosts: the same said in another order, and something else."""
    first = desk.write(0, node("1", neighbors=["2", "3"]), node("2", controlMsgsSent=3))
    other = json.loads(first.read_bytes())
    other["nodes"]["1"]["neighbors"].reverse()
    other["nodes"]["2"]["controlMsgsSent"] = 4
    second = first.with_name(f"00000000_other_{desk.protocol}.json")
    second.write_text(json.dumps(other))


def write_restarted(desk: Desk) -> None:
    totals = [5, 7, 7, 3, 4]
    for at, total in enumerate(totals):
        if at != 2:  # the next difference covers what is missing
            desk.write(at, node("1", bitsSent=total))


class TestBadInput:
    def test_bad_files_and_nodes_are_quarantined_with_their_reason(self, desk: Desk) -> None:
        write_refused(desk)
        found = stage(desk.path)
        assert quarantine(found) == [
            ("00000001", 1, "not JSON"),
            ("00000002", 1, "no 'nodes'"),
            ("00000003", 1, "'nodes' is not an object"),
            ("00000004", 1, "'intervalCount' is negative"),
            ("00000005", 2, "'controlMsgsSent' is negative"),
            ("00000005", 3, "'neighbors' is not an array"),
            ("00000006", 2, "no 'neighbors'"),
            ("00000006", 3, "'id' is not the node's key"),
            ("00000006", 4, "not an object"),
            ("00000007", 2, "'publicationMsgsReceived[].msgId' is not its key"),
            ("00000009", 1, "nested too deep"),
            ("00000010", 2, "'neighbors[]' has a control character"),
        ]
        texts = {line: text for name, line, _, text in found.quarantine if "05_" in name}
        assert json.loads(texts[2]) == node("2", controlMsgsSent=-1)
        assert sorted((record["interval"], record["peer"]) for record in found.records) == [
            *((0, "1"), (0, "2"), (5, "1"), (6, "1"), (7, "1"), (8, "2")),
            *((10, "1"), (10, "3"), (10, "4")),
        ]
        told = describe(found)
        assert told.notes["unknown field colour"] == told.notes["unknown field size"] - 1 == 1

    def test_files_of_unusual_name_or_packing_are_read(self, desk: Desk) -> None:
        write_packed(desk)
        found = stage(desk.path)
        assert {record["peer"] for record in found.records} == {"0", "1", "2"}
        assert quarantine(found) == [("00000003", 1, "cut off where the file is damaged")]

    def test_peer_reported_twice_counts_once_or_conflicts(self, desk: Desk) -> None:
        """The same said in another order counts once, else the first is taken."""
        write_twice(desk)
        found = stage(desk.path)
        assert quarantine(found) == [("00000000", 2, "conflicting report")]
        assert len(found.tables["traffic"]) == 2
        notes = describe(found).notes
        assert notes["repeated_records"] == notes["conflicting_records"] == 1

    def test_input_of_two_protocols_needs_only_option(self, desk: Desk, tmp_path: Path) -> None:
        desk.write(0, node("1"))
        desk.write(0, node("1"), node("2"), protocolName="protocol.q")
        both = stage(desk.path)
        with pytest.raises(UseError) as refused:
            describe(both)
        listing = "protocol.p (1 report), protocol.q (2 reports)"
        tells(str(refused.value), listing, "--input-run protocol.p")
        with pytest.raises(UnknownName, match=naming("'protocol.r'", "protocol.p", "protocol.q")):
            describe(both, only="protocol.r")
        seen = take(desk.path, only="protocol.q")
        assert seen.told.protocol == "protocol.q"
        assert seen.rows("peers", "name") == {("1",), ("2",)}

    def test_counter_that_only_another_run_sets_is_unknown(self, desk: Desk) -> None:
        desk.write(0, node("1", bitsSent=8))
        desk.write(0, node("1"), protocolName="protocol.q")
        assert not ReportTally.of(stage(desk.path, only="protocol.q").counted).moved

    def test_folder_without_files_is_refused(self, desk: Desk) -> None:
        desk.write(0).unlink()
        with pytest.raises(InputError, match=naming(desk.path, NO_FILES_IN)):
            take_inventory(None, find_files([str(desk.path)]), SOURCES)

    def test_input_without_nodes_is_refused(self, desk: Desk) -> None:
        desk.write(0)
        with pytest.raises(InputError, match=naming(NO_REPORT, "nodes")):
            describe(stage(desk.path))

    def test_merged_files_are_refused(self, desk: Desk, tmp_path: Path) -> None:
        """Of several hosts: without interval or host, and with peers that are long gone."""
        written = desk.write(0, node("1"))
        merged = written.with_name("00000001protocol.p.json")
        shutil.copy(written, merged)
        with pytest.raises(InputError, match=naming("json and merged json", merged.name)):
            take_inventory(None, find_files([str(desk.path)]), SOURCES)
        with pytest.raises(
            InputError, match=naming(merged, "vizpub ingest reports/unprocessed --run NAME")
        ):
            stage(merged)


class TestCounters:
    def test_zero_counter_is_measured_once_it_changes(self, desk: Desk, tmp_path: Path) -> None:
        desk.write(0, node("1"), node("2"))
        desk.write(1, node("1", controlMsgsSent=5), node("2"))
        seen = take(desk.path)
        columns = ("control_messages_sent", "control_messages_received", "duplicates")
        assert seen.rows("traffic", "peer", "interval", *columns) == {
            *(("1", 0, 0, None, None), ("2", 0, 0, None, None)),
            *(("1", 1, 5, None, None), ("2", 1, 0, None, None)),
        }
        assert "control.bytes" in seen.told.unknown

    def test_total_that_drops_counts_as_a_restart(self, desk: Desk) -> None:
        write_restarted(desk)
        seen = take(desk.path)
        found = seen.rows("traffic", "interval", "control_bytes_sent")
        assert found == {(0, 5), (1, 2), (3, 3), (4, 1)}


def test_demo_reports_have_the_keys_of_real_ones(outside_data: Outside) -> None:
    """The same keys in the same order."""
    files = (next(path.rglob("*.json")) for path in (folder(outside_data, "pubsub"), DEMO))
    real, ours = (json.loads(file.read_bytes()) for file in files)
    assert [*real] == [*ours]
    assert len({tuple(node) for told in (real, ours) for node in told["nodes"].values()}) == 1
