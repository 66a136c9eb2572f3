"""The recorded gossipsub trace of tests/data/libp2p_small, taken through its source."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tests.support.staged import Staged, Taken, staged
from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.sources.base import ObservedTables, RunDescription, SourceOptions
from vizpub.ingest.sources.libp2p.events import CONTROL, TraceEvent
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.reports.compressed import Content

DATA = Path(__file__).parents[2] / "data" / "libp2p_small"
TABLES = (
    *("peers", "presence", "links", "subscriptions"),
    *("traffic", "control", "publications", "receptions", "rejections"),
)
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Trace:
    """What a source makes of some files; the observed tables as rows."""

    files: list[InputFile]
    staged: Staged
    description: RunDescription
    observed: ObservedTables
    peers: Rows = field(default_factory=list)
    presence: Rows = field(default_factory=list)
    links: Rows = field(default_factory=list)
    subscriptions: Rows = field(default_factory=list)
    traffic: Rows = field(default_factory=list)
    control: Rows = field(default_factory=list)
    publications: Rows = field(default_factory=list)
    receptions: Rows = field(default_factory=list)
    rejections: Rows = field(default_factory=list)

    @property
    def events(self) -> Rows:
        """The events that the reader took, with their places; each once."""
        found = []
        for row in self.staged.rows:
            event = msgspec.msgpack.decode(row.record, type=TraceEvent)
            if event.peer == row.peer:
                assert event.time == row.time
                place = {"file": self.files[row.file].path, "position": row.line}
                told = msgspec.structs.asdict(event)
                del told["entries"]
                found.append({**place, **told, **entry_counts(event)})
        return found

    @property
    def quarantine(self) -> Rows:
        found: Rows = self.staged.tables["quarantine"].to_pylist()
        return sorted(found, key=lambda row: (row["file"], row["line"]))

    def alive(self, table: str, tick: int, **wanted: str) -> Rows:
        """The rows of a table of spans that hold at the tick, of those with these values."""
        return [
            row
            for row in getattr(self, table)
            if row["valid_from"] <= tick < row["valid_to"]
            and all(row[name] == value for name, value in wanted.items())
        ]

    def clipped(self) -> Trace:
        """As the pipeline does it, but naively: each peer here has one stay."""
        stay = {row["peer"]: (row["valid_from"], row["valid_to"]) for row in self.presence}
        assert len(stay) == len(self.presence)
        return replace(
            self,
            links=clip(clip(self.links, stay, "src"), stay, "dst"),
            subscriptions=clip(self.subscriptions, stay, "peer"),
        )


def entry_counts(event: TraceEvent) -> dict[str, int | None]:
    """How many entries of each kind, and ids in them, an RPC has; null for other events."""
    kinds = ("subscription", *CONTROL)
    if event.entries is None:
        return dict.fromkeys(["messages", *kinds, *(f"{kind}_ids" for kind in kinds)])
    counts = {"messages": event.entries.messages}
    for kind in kinds:
        of_kind = kind if kind in CONTROL else "subscribe"
        mine = [
            entry for entry in event.entries.control if entry.kind.removeprefix("un") == of_kind
        ]
        counts |= {kind: len(mine), f"{kind}_ids": sum(entry.ids or 0 for entry in mine)}
    return counts


def rows(table: pa.Table) -> Rows:
    found: Rows = table.to_pylist()
    return found


def clip(spans: Rows, stays: dict[str, tuple[int, int]], peer: str) -> Rows:
    out = []
    for span in spans:
        since, until = stays[span[peer]]
        valid_from, valid_to = max(span["valid_from"], since), min(span["valid_to"], until)
        if valid_from < valid_to:
            out.append(span | {"valid_from": valid_from, "valid_to": valid_to})
    return out


Ingest = Callable[..., Trace]


@pytest.fixture(scope="session")
def ingest() -> Ingest:
    """Files → Trace with these tables."""

    @cache
    def folded(paths: tuple[Path, ...], options: SourceOptions) -> tuple[list[InputFile], Staged]:
        files = [input_file(Libp2p(), path) for path in paths]
        return files, staged(Libp2p(), files, options)

    def run(
        paths: Sequence[Path],
        options: SourceOptions | None = None,
        tables: Sequence[str] = TABLES,
    ) -> Trace:
        options = options or SourceOptions()
        files, found = folded(tuple(paths), replace(options, reporters_only=False))
        taken = Taken(Libp2p(), found, options)
        observed = {name: rows(taken.table(name)) for name in tables}
        return Trace(files, found, taken.told, taken.seen, **observed)

    return run


def input_file(source: Libp2p, path: Path) -> InputFile:
    with path.open("rb") as stream:
        content = Content(stream)
        data = b"".join(content)
    encoding = source.recognises(str(path), data[: 1 << 16])
    assert encoding is not None
    return InputFile(str(path), encoding, path.stat().st_size, "")


@pytest.fixture(scope="session")
def as_json(ingest: Ingest) -> Trace:
    """One JSON file per peer."""
    return ingest(sorted((DATA / "json").iterdir()))


@pytest.fixture(scope="session")
def data() -> Path:
    return DATA


@cache
def _read(name: str) -> Any:
    text = (DATA / name).read_bytes()
    return json.loads(gzip.decompress(text) if name.endswith(".gz") else text)


@pytest.fixture(scope="session")
def facts() -> Any:
    return _read("facts.json")


@dataclass(frozen=True)
class Truth:
    """What the driver of the recorded run saw from inside, in the words of the trace."""

    recorded: Any
    epoch_us: int

    def tick(self, ns: int) -> int:
        return ns // 1000 - self.epoch_us

    @property
    def names(self) -> dict[int, str]:
        return {node["idx"]: node["peer_id"] for node in self.recorded["nodes"]}

    def named(self, peers: dict[str, list[int]]) -> dict[str, set[str]]:
        """Recorded neighbours by index → non-empty sets of names by name."""
        return {
            self.names[int(peer)]: {self.names[other] for other in others}
            for peer, others in peers.items()
            if others
        }


@pytest.fixture(scope="session")
def truth() -> Truth:
    recorded = _read("truth.json.gz")
    return Truth(recorded, recorded["start_ns"] // 1000)


@pytest.fixture(scope="session")
def tracestat() -> Any:
    return _read("tracestat.json.gz")
