from __future__ import annotations

import gzip
import json
from pathlib import Path

from vizpub.simulators.engine.folder import Folder
from vizpub.simulators.engine.plan import make_plan
from vizpub.simulators.engine.simulation import simulate


def links_by_layer(folder: Folder) -> dict[str, set[tuple[int, int, int, str]]]:
    """(interval, peer, neighbour, topic) of links; `wanted` are the subscriptions."""
    found: dict[str, set[tuple[int, int, int, str]]] = {"wanted": set()}
    for path in folder.reports.glob("*.gz"):
        for record in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()):
            if "neighbors" not in record:  # a header, or somebody who left
                continue
            at, peer = record["interval"], record["peer"]
            found["wanted"] |= {(at, peer, -1, topic) for topic in record["topics"]}
            for link in record["neighbors"]:
                if "topic" in link:
                    place = (at, peer, link["peer"], link["topic"])
                    found.setdefault(link["layer"], set()).add(place)
    return found


def test_members_layer_equals_tree_links_between_two_subscribers(tmp_path: Path) -> None:
    chosen = {
        "peers": 40,
        "intervals": 12,
        "workload": "zipf:topics=20,subscriptions=3",
        "churn": "exponential:session=20s,down=10s",
    }
    folder = Folder(tmp_path / "run")
    simulate(make_plan("vizpub.experiments.subscriber_links:SubscriberScribe", chosen, 3), folder)
    found = links_by_layer(folder)
    wanted = {(at, peer, topic) for at, peer, _, topic in found["wanted"]}
    up = {(at, peer) for at, peer, _ in wanted}
    expected = {
        (at, peer, other, topic)
        for at, peer, other, topic in found["tree"]
        if (at, peer, topic) in wanted and (at, other, topic) in wanted
    }
    # Of a parent that is down, but not yet missed, nothing is reported.
    assert {link for link in found["members"] if (link[0], link[2]) in up} == expected
    assert len(found["tree"]) > len(found["members"]) > 50
