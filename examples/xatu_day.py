"""Generate a small day in the layout of Xatu's published tables: `python xatu_day.py FOLDER`.

Two sentries hold connections and mesh links to 40 peers of four clients, and blocks arrive. All of
it is drawn at random (seed 1); nothing is taken from Ethereum.
"""

import sys
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

DAY = datetime(2026, 8, 21, 12, tzinfo=UTC)
CLIENTS = {"lighthouse": (40, 20), "prysm": (70, 30), "teku": (110, 40), "nimbus": (60, 20)}
"""The mean and spread of the milliseconds after which a client's peers pass a block on."""
TOPIC = {
    "topic_layer": "eth2",
    "topic_fork_digest_value": "bba4da96",
    "topic_name": "beacon_block",
    "topic_encoding": "ssz_snappy",
}
random = Random(1)
rows: dict[str, list[dict[str, object]]] = defaultdict(list)


def add(table: str, sentry: str, seconds: float, **values: object) -> None:
    """Add a row, `seconds` after the beginning."""
    time = DAY + timedelta(milliseconds=round(1000 * seconds))
    common = {"event_date_time": time, "meta_client_name": sentry, "meta_network_name": "mainnet"}
    rows[table].append(common | values)


peers = {1000 + number: random.choice([*CLIENTS]) for number in range(40)}
for sentry in ("sentry-berlin", "sentry-helsinki"):
    add("join", sentry, 0, **TOPIC, local_peer_id_unique_key=len(sentry))
    mesh = random.sample([*peers], 8)
    for peer, client in peers.items():
        facts = {"remote_peer_id_unique_key": peer, "remote_agent_implementation": client}
        add("connected", sentry, random.uniform(0, 5), **facts, direction="outbound", opened=DAY)
    for peer in mesh:
        add("graft", sentry, random.uniform(5, 8), **TOPIC, peer_id_unique_key=peer)
    for slot in range(1, 26):
        arrivals = sorted((random.gauss(*CLIENTS[peers[peer]]), peer) for peer in mesh)
        for place, (delay_ms, peer) in enumerate(arrivals):
            table = "duplicate_message" if place else "deliver_message"
            block = {"message_id": f"{slot:040x}", "message_size": 90_000, "seq_number": 0}
            late = 1.5 + max(delay_ms, 1) / 1000
            add(table, sentry, 12 * slot + late, **TOPIC, **block, peer_id_unique_key=peer)
    for peer in mesh[:3]:
        add("prune", sentry, random.uniform(100, 200), **TOPIC, peer_id_unique_key=peer)
for table, content in rows.items():
    folder = Path(sys.argv[1], f"mainnet/databases/default/libp2p_{table}/{DAY.year}/{DAY.month}")
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(content), folder / f"{DAY.day}.parquet")
