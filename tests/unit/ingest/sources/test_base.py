"""What sources say of the beginnings of files, sound ones and damaged ones."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vizpub.ingest.inputs.files import find_files
from vizpub.ingest.inputs.inventory import take_inventory
from vizpub.ingest.sources import SOURCES
from vizpub.model.errors import InputError

SEED = 20
LINES = {
    "reports": b'{"format": "vizpub.report/1", "peer": "a", "interval": 0}',
    "libp2p": b'{"type":9,"peerID":"ACQI","timestamp":9,"join":{"topic":"news"}}',
    "interop": b'{"time":"2000-01-01T00:00:00Z","level":"INFO","msg":"PeerID","id":"12D3"}',
    "bctrace": b'{"v":1,"nodes":["n0"],"topology":{}}\n[0,0,"tj","news"]',
    "nebula": b'{"PeerID":"a","NeighborIDs":["b"],"ErrorBits":"0000000000000000"}',
    "deliveries": b"msg,node,prev_node,t_us\n0,1,1,0",
    "edges": b"src,dst\n1,2",
    "vizpub": b'{"protocolName":"p","intervalCount":0,"nodes":{"a":{"id":"a"}}}',
}


def source_of(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return take_inventory(None, find_files([str(path)]), SOURCES).source


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("damage", [b'"\xff"', b'{"PeerID": "\xff"}', b"[" * 9000, b"\x00", b"{}"])
def test_damaged_line_hides_no_format(tmp_path: Path, name: str, damage: bytes) -> None:
    head = b"\n".join([LINES[name], *[LINES[name].split(b"\n")[-1]] * 4, damage, b""])
    assert source_of(tmp_path / "x", head) == name


LOG = "".join(f"node1-1  | {LINES['interop'].decode()}\n" for _ in range(3))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("src,dst,weight\na,b,3\n", "its header is 'src,dst,weight'; expected 'src,dst'"),
        ("src;dst\na;b\n", "its header is 'src;dst'; expected 'src,dst'"),
        ("src,dst,interval\na,b,0\n", "is 'src,dst,interval'; expected 'interval,src,dst'"),
        ("node,msg,prev_node,t_us\n0,1,1,0\n", "expected 'msg,node,prev_node,t_us'"),
        (LOG, "'node1-1  | ' stands before the object of JSON in its lines: remove it"),
    ],
)
def test_file_that_is_almost_of_a_source_is_told_what_differs(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(InputError, match=re.escape(why)):
        source_of(tmp_path / "x", text.encode())
    (tmp_path / "links.csv").write_text("src,dst\na,b\n")
    ((_, told),) = take_inventory(None, find_files([str(tmp_path)]), SOURCES).skipped
    assert why in told


def mutant(rng: random.Random, content: bytes) -> bytes:
    """With a few bytes replaced, inserted or removed."""
    made = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 9])):
        at = rng.randrange(len(made) + 1)
        made[at : at + rng.choice([0, 1, 1, 4])] = rng.choice([b"", b"\xff", b"\xc3", b"\0", b'"'])
    return bytes(made)


def test_recognition_never_fails(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    print("seed", SEED)
    table = {"timestamp": [1], "type": ["x"], "producerid": ["a"], "subtype": ["y"], "topic": ["t"]}
    pq.write_table(pa.table(table), tmp_path / "hermes")
    sound = [*LINES.values(), (tmp_path / "hermes").read_bytes()]
    for content in sound:
        for _ in range(60):
            with suppress(InputError):
                source_of(tmp_path / "x", mutant(rng, content + b"\n"))
