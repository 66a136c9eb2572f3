"""The files of the gossipsub interoperability tester: hosts, network and script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import pytest

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources.libp2p.tester import (
    HOSTS,
    NETWORK,
    PARAMETERS,
    attributes_of,
    encoding_of,
    parameters_of,
    parse_hosts,
    parse_network,
)

SHADOW = """general:
  stop_time: 10 min
hosts:
  node0:
    bandwidth_down: 25 Mbit
    bandwidth_up: 500 kbit
    network_node_id: 1
    processes:
    - args: --params
        /a/long/path/params.json
      environment: {}
      path: go-libp2p/gossipsub-bin
  'node1':
    network_node_id: 0
    processes:
    - environment:
        PATH: /bin
      path: "/opt/test-plans/jvm-libp2p/build/install/bin/jvm-libp2p-gossip"
    - path: other
network:
  graph:
    file:
      path: graph.gml
"""


def test_hosts_have_the_node_and_first_program_of_their_block() -> None:
    assert parse_hosts(SHADOW) == {
        "node0": {
            "bandwidth_down": "25 Mbit", "bandwidth_up": "500 kbit", "network_node_id": "1",
            "path": "go-libp2p/gossipsub-bin",
        },
        "node1": {
            "network_node_id": "0",
            "path": "/opt/test-plans/jvm-libp2p/build/install/bin/jvm-libp2p-gossip",
        },
    }  # fmt: skip
    assert parse_hosts("hosts: {node0: {}}\n") == parse_hosts("general:\n") == {}


def test_network_has_the_nodes_that_networkx_writes() -> None:
    graph = networkx.DiGraph()
    labels = [f"place {n}-{kind}" for n in range(4) for kind in ("supernode", "fullnode")]
    for label in labels:
        graph.add_node(label, host_bandwidth_up="1024 Mbit")
    graph.add_edges_from((a, b, {"label": f"{a} to {b}"}) for a in labels for b in labels)
    found = parse_network("\n".join(networkx.generate_gml(graph)))
    assert [node["label"] for _, node in sorted(found.items())] == labels
    assert {node["host_bandwidth_up"] for node in found.values()} == {"1024 Mbit"}


def test_log_has_the_attributes_of_its_host_in_the_nearest_folder(tmp_path: Path) -> None:
    files = []
    for folder in (tmp_path, tmp_path / "inner"):
        folder.mkdir(exist_ok=True)
        (folder / "shadow.yaml").write_text(
            SHADOW.replace("go-libp2p", "nim-libp2p") if folder.name == "inner" else SHADOW
        )
        (folder / "graph.gml").write_text(
            'graph [ node [ id 0 label "na_east" host_bandwidth_up "2 Gbit" ] '
            'node [ id 1 label "europe-fullnode" host_bandwidth_down "fast" ] ]'
        )
        for name, kind in (("shadow.yaml", HOSTS), ("graph.gml", NETWORK)):
            files.append(InputFile(str(folder / name), kind, 1, f"{folder}"))
    assert attributes_of(f"{tmp_path}/hosts/node0/a.stdout", files) == {
        "implementation": "go-libp2p", "region": "europe", "node_type": "fullnode",
        "upload_bw_mbps": "0.5", "download_bw_mbps": "25",
    }  # fmt: skip
    assert attributes_of(f"{tmp_path}/inner/hosts/node0/a.stdout", files)["implementation"] == (
        "nim-libp2p"
    )
    assert attributes_of(f"{tmp_path}/hosts/node1/a.stdout", files) == {
        "implementation": "jvm-libp2p", "region": "na_east", "upload_bw_mbps": "2000",
    }  # fmt: skip
    assert attributes_of(f"{tmp_path}/hosts/node2/a.stdout", files) == {}
    assert attributes_of("/elsewhere/node0/a.stdout", files) == {}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"script": []}, {}),
        ({"script": 3, "seed": 7}, {"seed": 7}),
        (
            {
                "script": [
                    {"type": "initGossipSub", "gossipSubParams": {"D": 8, "GossipFactor": 0.25}},
                    {"type": "ifNodeIDEquals", "nodeID": 1, "instruction": {
                        "type": "connect", "connectTo": [2, 3]}},
                    {"type": "publish", "messageID": 0, "topicID": "a", "messageSizeBytes": 9},
                    {"type": "publish", "messageID": 1, "topicID": "b", "messageSizeBytes": 9},
                    {"type": "waitUntil", "elapsedSeconds": 5},
                ]
            },
            {"D": 8, "GossipFactor": 0.25, "messageSizeBytes": 9},
        ),
    ],
)  # fmt: skip
def test_parameters_are_what_the_script_says_alike_everywhere(
    values: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert parameters_of(values) == expected


@pytest.mark.parametrize(
    ("path", "head", "encoding"),
    [
        ("/a/params.json", b'{"script": [{"type"', PARAMETERS),
        ("/a/params.json", b'{"peers": 3}', None),
        ("/a/b.json", b'{"script": []}', None),
        ("/a/shadow.yaml", SHADOW.encode(), HOSTS),
        ("/a/shadow.yaml.gz", b"hosts:\n", HOSTS),
        ("s3://b/params.json?region=eu", b'{"script": [{"type"', PARAMETERS),
        ("s3://b/graph.gml.gz?endpoint_override=c/d", b"graph [", NETWORK),
        ("/a/shadow.yaml", b"general:\n  my hosts: 3\n", None),
        ("graph.gml", b"graph [\n  directed 1", NETWORK),
        ("graph.gml", b"Creator x", None),
    ],
)
def test_files_are_recognised_by_name_and_content(
    path: str, head: bytes, encoding: str | None
) -> None:
    assert encoding_of(path, head) == encoding
