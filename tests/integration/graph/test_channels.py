"""Broadcast channels, from the simulator's reports to the questions of their manager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.integration.graph.conftest import Calls, Graph
from tests.support.few import few
from tests.support.ingested import Store, workspace_of
from vizpub.graphstore.gexf.check import check_gexf
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.address import Connection
from vizpub.questions.run import Run
from vizpub.questions.sql import answer
from vizpub.runstore.store import StoredRun
from vizpub.simulators.channels.layout import ChannelLayout
from vizpub.simulators.channels.running import ChannelMeasurement, run
from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate

pytestmark = [pytest.mark.spark, pytest.mark.neo4j]

RUN = "broadcast-channels"
SEED, CHANNELS, CLIENTS, SECOND = 5, 4, 14, 1_000_000
FIRST = 1 + CHANNELS
CHOSEN: dict[str, Any] = {
    "channels": CHANNELS, "peers": FIRST + CLIENTS, "intervals": 6, "listen": 2, "gap": "40ms",
    "sources": 2, "items": 6, "profile": "zipf:4", "assignment": "random", "mapping": "offline-c",
    "last_update": 3,
}  # fmt: skip
RECEIVED = """
SELECT count(*), avg(receptions.time_us - publications.time_us)
FROM receptions JOIN publications USING (message) WHERE first AND eligible
"""
AT_CLIENTS = f"""
SELECT count(*), count(*) FILTER (NOT subscribed), count(*) FILTER (subscribed AND NOT first)
FROM receptions WHERE peer_name::INTEGER >= {FIRST}
"""


@pytest.fixture(scope="module")
def layout() -> ChannelLayout:
    parameters = make_plan("channels", CHOSEN, SEED).parameters
    return ChannelLayout(parameters, CLIENTS, SEED)


@pytest.fixture(scope="module")
def counted(layout: ChannelLayout) -> ChannelMeasurement:
    """What the compiled pipeline makes of the same updates."""
    return run(layout, layout.updates((SECOND, 4 * SECOND)), 6 * SECOND, SECOND)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory, stored: Store) -> StoredRun:
    folder = Folder(tmp_path_factory.mktemp("channels") / "simulated")
    simulate(make_plan("channels", CHOSEN, SEED), folder)
    return stored(RUN, *sorted(folder.reports.iterdir()))


@pytest.fixture(scope="module")
def vizpub(ingested: StoredRun, graph: Graph, neo4j_server: Connection) -> Iterator[Calls]:
    graph.remove(RUN)
    load_run(graph.driver, graph.database, ingested.facts, ingested)
    yield Calls(workspace_of(ingested), neo4j_server)
    graph.remove(RUN)


def of_sql(ingested: StoredRun, statement: str) -> tuple[Any, ...]:
    with answer(ingested, statement) as found:
        (row,) = found.read_all().to_pylist()
    return tuple(row.values())


def test_metrics_of_messages_are_those_of_the_updates(
    ingested: StoredRun, layout: ChannelLayout, counted: ChannelMeasurement
) -> None:
    messages = Run(ingested).metrics("messages").to_pylist()
    totals = counted.totals
    assert len(messages) == totals["updates"] > 0
    assert sum(one["eligible"] for one in messages) == counted.counts.heard.sum()
    assert {one["hit_ratio"] for one in messages} <= {1.0, None}
    sent = int(counted.counts.sent.sum())
    assert sum(one["receptions"] for one in messages) == totals["receptions"] + sent
    assert sum(one["relay_receptions"] for one in messages) == totals["unwanted"] + sent


def test_delay_of_eligible_clients_is_their_staleness(
    ingested: StoredRun, counted: ChannelMeasurement
) -> None:
    heard, delay = of_sql(ingested, RECEIVED)
    assert heard == counted.counts.heard.sum() > 0
    assert delay == pytest.approx(counted.weighted_staleness)


def test_relay_share_of_clients_is_their_fluff(
    ingested: StoredRun, counted: ChannelMeasurement
) -> None:
    receptions, unwanted, again = of_sql(ingested, AT_CLIENTS)
    assert receptions == counted.totals["receptions"]
    assert unwanted / receptions == counted.fluff
    assert 0 < again == counted.totals["duplicates"]


@pytest.mark.parametrize("client", few(range(CLIENTS), range(0, CLIENTS, 5)))
def test_client_has_its_channels_and_pages(
    vizpub: Calls, layout: ChannelLayout, client: int
) -> None:
    peer = f"peer={FIRST + client}"
    channels = vizpub.json("query", RUN, "channels-of-client", "-p", "at=last", "-p", peer)
    assert channels == [
        {"channel": str(1 + channel), "clients": int(layout.listens[:, channel].sum())}
        for channel in layout.channels_of[client].tolist()
    ]
    pages = vizpub.json("query", RUN, "pages-of-client", "-p", "at=last", "-p", peer)
    by_name = {row["page"]: row["clients"] for row in pages}
    wanted = np.flatnonzero(layout.wants[client]).tolist()
    assert by_name == {str(page): int(layout.wants[:, page].sum()) for page in wanted}


@pytest.mark.parametrize("channel", range(CHANNELS))
def test_channel_has_its_clients(vizpub: Calls, layout: ChannelLayout, channel: int) -> None:
    peer = f"peer={1 + channel}"
    rows = vizpub.json("query", RUN, "clients-of-channel", "-p", "at=last", "-p", peer)
    listeners = np.flatnonzero(layout.listens[:, channel]).tolist()
    assert {row["client"]: row["pages"] for row in rows} == {
        str(FIRST + client): int(layout.wants[client].sum()) for client in listeners
    }


def test_page_has_its_channels(vizpub: Calls, layout: ChannelLayout) -> None:
    assert layout.static_mapping is not None
    for page in np.flatnonzero(layout.wants.any(axis=0)).tolist():
        topic = f"topic={page}"
        rows = vizpub.json("query", RUN, "channels-of-page", "-p", "at=last", "-p", topic)
        expected = np.flatnonzero(layout.static_mapping[page]).tolist()
        assert [int(row["channel"]) - 1 for row in rows] == expected, page
        assert {row["server"] for row in rows} == {"0"}


def test_channels_are_exported_for_gephi(vizpub: Calls, tmp_path: Any) -> None:
    file = tmp_path / "channels.gexf"
    done = vizpub("export", "gexf", RUN, "-o", str(file))
    assert done.exit_code == 0, done.stderr
    assert list(check_gexf(file)) == []
