"""The grammar of VizPub's nodes: what is refused, and that the fast look passes nothing unsound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vizpub.ingest.sources.vizpub.nodes import NODE, check_node

DEMO = Path(__file__).parents[4] / "data/vizpub/reports/processed/protocol.demo"
NODES = [
    node
    for path in sorted(DEMO.glob("*.json"))
    for node in json.loads(path.read_bytes())["nodes"].values()
]
MESSAGE = {"msgId": "m", "topicId": "t", "destinationIds": ["2"], "hopCount": 1}


def node(**fields: Any) -> dict[str, Any]:
    return {"id": "1", "neighbors": [], **fields}


@pytest.mark.parametrize("sound", NODES)
def test_vizpub_nodes_are_valid(sound: dict[str, Any]) -> None:
    assert list(NODE.problems(sound, "")) == []


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        (7, ["not an object"]),
        ({}, ["no 'id'", "no 'neighbors'"]),
        (node(id=7), ["'id' is not a string"]),
        (node(neighbors=None), ["no 'neighbors'"]),
        (node(neighbors=["2", 3, ""]), ["'neighbors[]' is not a string", "'neighbors[]' is empty"]),
        (node(topics={}), ["'topics' is not an array"]),
        (
            node(bitsSent=-1, duplicateCount="1"),
            ["'bitsSent' is negative", "'duplicateCount' is not an integer"],
        ),
        (node(controlMsgsReceived=1.5), ["'controlMsgsReceived' is not an integer"]),
        (node(publicationMsgsSent=[]), ["'publicationMsgsSent' is not an object"]),
        (node(publicationMsgsSent={"m": 1}), ["'publicationMsgsSent[]' is not an object"]),
        (
            node(publicationMsgsSent={"m": {}}),
            ["no 'publicationMsgsSent[].msgId'", "'publicationMsgsSent[].msgId' is not its key"],
        ),
        (
            node(publicationMsgsReceived={"m": {**MESSAGE, "hopCount": -1}}),
            ["'publicationMsgsReceived[].hopCount' is negative"],
        ),
        (
            node(publicationMsgsReceived={"n": MESSAGE}),
            ["'publicationMsgsReceived[].msgId' is not its key"],
        ),
    ],
)
def test_invalid_node_is_told_with_its_problems(value: object, problems: list[str]) -> None:
    assert list(NODE.problems(value, "")) == problems


def test_node_with_a_key_twice_is_refused_alone() -> None:
    assert check_node(b'{"id":"1","id":"2","neighbors":[]}', "2")[1] == ["a key appears twice"]


def test_unknown_fields_are_named_with_their_place() -> None:
    value = node(colour=1, publicationMsgsSent={"m": {**MESSAGE, "size": 3}})
    assert [*NODE.unknown_paths(value, "")] == ["colour", "publicationMsgsSent[].size"]
