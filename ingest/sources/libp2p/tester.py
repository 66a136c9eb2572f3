"""What the gossipsub interoperability tester ran: its script, and the hosts and network of Shadow.

The tester writes `params.json`, `shadow.yaml` and `graph.gml` into the folder of a run, beside
`hosts/NODE/*.stdout`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from vizpub.ingest.inputs.files import InputFile, locate
from vizpub.ingest.inputs.reader import parse_object
from vizpub.ingest.sources.base import or_none
from vizpub.reports.compressed import Content, plain_path
from vizpub.reports.fields import INT64

PARAMETERS, HOSTS, NETWORK = "log(params)", "log(shadow)", "log(graph)"
"""The encodings of the files."""

_FILES = {
    "params.json": (PARAMETERS, re.compile(rb'\A\s*\{.*"script"', re.DOTALL)),
    "shadow.yaml": (HOSTS, re.compile(rb"^hosts:", re.MULTILINE)),
    "graph.gml": (NETWORK, re.compile(rb"\A\s*graph\s*\[")),
}
"""The encoding of a file by its name, and what is in its beginning."""
_OF_SINGLE_INSTRUCTIONS = {"type", "nodeID", "messageID", "groupID", "parts", "elapsedSeconds"}
_SECTION = re.compile(r"^hosts:[ \t]*\n((?:[ \t]+.*\n?|\n)*)", re.MULTILINE)
_HOST = re.compile(r"( +)['\"]?([^\s'\":]+)['\"]?:\s*")
_FACT = re.compile(r"[ -]+(network_node_id|bandwidth_up|bandwidth_down|path):\s*(\S.*?)\s*")
_NODE = re.compile(r"\bnode\s*\[(.*?)\]", re.DOTALL)
_VALUE = re.compile(r'\b(id|label|host_bandwidth_up|host_bandwidth_down)\s+(?:"([^"]*)"|(\d+))')
_BANDWIDTH = re.compile(r"([\d.]+)\s*([kKMG]?)bit")
_MBIT = {"": 1e-6, "k": 1e-3, "K": 1e-3, "M": 1.0, "G": 1e3}
_IMPLEMENTATION = re.compile(r"[^/]*-libp2p[^/]*")
_NODE_TYPES = ("supernode", "fullnode")
_Facts = Mapping[str, str]


def encoding_of(path: str, head: bytes) -> str | None:
    """Return the encoding of a file that the tester writes beside the logs; null for others."""
    name = plain_path(path).rpartition("/")[2].removesuffix(".gz")
    encoding, content = _FILES.get(name, (None, None))
    return encoding if content and content.search(head) else None


def parameters_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the file of parameters sets: its own values, and those that instructions of its
    script have, each that is the same wherever it is given.
    """
    settings = (
        (name, value)
        for instruction in _instructions(values.get("script"))
        for name, value in instruction.items()
        if name not in _OF_SINGLE_INSTRUCTIONS and not isinstance(value, dict | list)
    )
    own = {name: value for name, value in values.items() if name != "script"}
    return {**dict(sorted(_agreed(settings).items())), **own}


def _instructions(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield instructions, also those inside others."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for inside in value if isinstance(value, list) else ():
        yield from _instructions(inside)


def _agreed(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the value of each name that has the same one everywhere."""
    given = defaultdict[str, list[Any]](list)
    for name, value in values:
        given[name].append(value)
    return {name: of[0] for name, of in given.items() if all(one == of[0] for one in of)}


def sizes_of(log: str, files: Sequence[InputFile]) -> Mapping[str, int]:
    """Return the bytes of each message that the script publishes with one size, by the nearest file
    of parameters above a log.
    """
    nearest = _nearest(log, files, PARAMETERS)
    return {} if nearest is None else _read_sizes(nearest)


@lru_cache(4)
def _read_sizes(parameters: InputFile) -> Mapping[str, int]:
    # One that cannot be read is refused where the parameters of the run are read.
    values = or_none(parse_object, _read_text(parameters.path).encode()) or {}
    published = (
        (str(instruction.get("messageID")), instruction.get("messageSizeBytes"))
        for instruction in _instructions(values.get("script"))
        if instruction.get("type") == "publish"
    )
    sizes = _agreed(published).items()
    return {name: size for name, size in sizes if type(size) is int and 0 <= size <= INT64}


def attributes_of(log: str, files: Sequence[InputFile]) -> _Facts:
    """Return the attributes of the node that wrote a log, of which `files` tell the hosts and the
    network: `implementation`, `region`, `node_type`, `upload_bw_mbps` and `download_bw_mbps`.
    """
    hosts, network = (_nearest(log, files, encoding) for encoding in (HOSTS, NETWORK))
    host = _folder(log).rpartition("/")[2]
    return {} if hosts is None else _read_hosts(hosts, network).get(host, {})


def _nearest(log: str, files: Sequence[InputFile], encoding: str) -> InputFile | None:
    """Return the nearest file of an encoding in the folders above a log; null if there is none."""
    above = (
        file
        for file in files
        if file.encoding == encoding and plain_path(log).startswith(_folder(file.path) + "/")
    )
    return max(above, key=lambda file: len(file.path), default=None)


def _folder(path: str) -> str:
    return plain_path(path).rpartition("/")[0]


@lru_cache(4)
def _read_hosts(hosts: InputFile, network: InputFile | None) -> Mapping[str, _Facts]:
    """Return the attributes of each host."""
    nodes = {} if network is None else parse_network(_read_text(network.path))
    return {
        host: _attributes(facts, nodes.get(facts.get("network_node_id", ""), {}))
        for host, facts in parse_hosts(_read_text(hosts.path)).items()
    }


def _read_text(path: str) -> str:
    filesystem, inside = locate(path)
    with filesystem.open_input_stream(inside, compression=None) as stream:
        return b"".join(Content(stream)).decode("utf-8", "replace")


def parse_hosts(text: str) -> dict[str, dict[str, str]]:
    """Return facts about each host of Shadow's configuration, as the tester writes it: in blocks,
    not as JSON.
    """
    section = _SECTION.search(text)
    hosts: dict[str, dict[str, str]] = {}
    indent = None
    for line in section[1].splitlines() if section else ():
        if (match := _HOST.fullmatch(line)) and indent in (None, match[1]):
            indent, facts = match[1], hosts.setdefault(match[2], {})
        elif (match := _FACT.fullmatch(line)) and hosts:
            facts.setdefault(match[1], match[2].strip("'\""))
    return hosts


def parse_network(text: str) -> dict[str, dict[str, str]]:
    """Return facts about each node of Shadow's network, by its id."""
    nodes = [
        {name: quoted or number for name, quoted, number in _VALUE.findall(node)}
        for node in _NODE.findall(text)
    ]
    return {node["id"]: node for node in nodes if "id" in node}


def _attributes(host: _Facts, node: _Facts) -> _Facts:
    """Return the attributes of a host, whose own bandwidths win over those of its node."""
    region, _, node_type = node.get("label", "").rpartition("-")
    if node_type not in _NODE_TYPES:
        region, node_type = node.get("label", ""), ""
    path = host.get("path", "")
    named = _IMPLEMENTATION.search(path)
    values = {
        "implementation": named[0] if named else path,
        "region": region,
        "node_type": node_type,
        **{
            f"{way}load_bw_mbps": or_none(_mbit, host.get(f"bandwidth_{way}") or node[key]) or ""
            for way in ("up", "down")
            if (key := f"host_bandwidth_{way}") in node or f"bandwidth_{way}" in host
        },
    }
    return {name: value for name, value in values.items() if value}


def _mbit(text: str) -> str:
    """Return a bandwidth such as '1 Gbit' in Mbit/s. Raises: ValueError and more."""
    match = _BANDWIDTH.fullmatch(text)
    assert match is not None
    return f"{float(match[1]) * _MBIT[match[2]]:.12g}"
