"""The source: Parquet of Xatu, the Ethereum Foundation's network of sentries, as published.

A file is a day, or an hour, of a table: `…/libp2p_graft/2026/8/21.parquet`. The tables are the
events of go-libp2p-pubsub's tracer in columns, with keys for peers and in milliseconds, of several
sentries. They are folded like traces of go-libp2p-pubsub. They are a sample: of messages by their
id, and of topics; so what is counted over messages or topics is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from vizpub.ingest.inputs.files import InputFile
from vizpub.ingest.inputs.reader import InputSplit, SplitReader
from vizpub.ingest.sources.base import (
    ObservedTables,
    RunDescription,
    SourceInput,
    SourceOptions,
    Tallies,
)
from vizpub.ingest.sources.folded import NO_REJECTIONS
from vizpub.ingest.sources.libp2p.facts import TraceJudge, TraceTally
from vizpub.ingest.sources.libp2p.fold import MESH, STREAMS, EventFold
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.tables.row_groups import schema_of, splits_by_group
from vizpub.ingest.sources.xatu.fold import CONNECTIONS, XatuFold
from vizpub.ingest.sources.xatu.reader import KeyReader, TableReader
from vizpub.ingest.sources.xatu.tables import (
    ENTRIES,
    PAYLOADS,
    SENTRY,
    TABLES,
    TIME,
    WAYS,
    find_faults,
    table_of,
)
from vizpub.ingest.tasks.fold import RunCounts
from vizpub.model.errors import InputError, UnknownName
from vizpub.model.run import DUPLICATES, SAMPLED

NOT_NAMED = "its name and folders do not say which table it is: keep them as published"
SEVERAL_NETWORKS = "the input has several networks"
INCOMPLETE = "Parquet that cannot be read: download it again"
UNJOINED = "control entries whose RPC is not in the input"
REPEATED = "rows of which a newer version was read"

_PARQUET = "parquet"
_LINKED = ("connected", "disconnected", "synthetic_heartbeat", "add_peer", "remove_peer")
_ARRIVALS = ("deliver_message", "duplicate_message", *PAYLOADS)
_NEEDED_FOR = {
    "links": (*_LINKED, "graft"),
    "presence": _LINKED,
    "topics": ("join", "leave", "rpc_meta_subscription"),
    "messages": _ARRIVALS,
    DUPLICATES: ("duplicate_message",),
    "control messages": tuple(ENTRIES),
}
"""What is unknown without all of some tables."""
_NEVER_KNOWN = (
    SAMPLED,
    "traffic (RPCs without an entry of the sample are left out)",
    "IHAVE, IWANT and IDONTWANT (only entries of sampled messages are kept)",
    "rejections",
    "publishers of messages",
)
_WAYS = {"send_rpc": "sent", "recv_rpc": "received", "drop_rpc": "dropped"}
_NO_PUBLICATIONS = """
    SELECT
        NULL::VARCHAR AS message, NULL::VARCHAR AS topic, NULL::VARCHAR AS publisher,
        NULL::INTEGER AS interval, NULL::BIGINT AS time_us, NULL::BIGINT AS tick,
        NULL::BIGINT AS bytes
    WHERE false
"""
_ONE_FIRST = """
    FROM folded.receptions
    -- A message that the application got was delivered before.
    QUALIFY NOT first
        OR row_number() OVER (PARTITION BY peer, message, first ORDER BY tick, arrival) = 1
"""


class Xatu(Libp2p):
    """The source `xatu`: a Libp2p whose reader takes the tables of Xatu."""

    name = "xatu"
    names_messages = False
    files_overlap = True
    fold = XatuFold
    every_layer = frozenset({STREAMS, CONNECTIONS, MESH})
    options = frozenset({"interval_us", "only", "reporters_only"})
    tables = {**XatuFold.tables}  # noqa: RUF012 - as that of Libp2p

    def recognises(self, path: str, head: bytes) -> str | None:
        """Return 'parquet(TABLE)' for a file with the name and the columns of a table."""
        name, schema = table_of(path), schema_of(path, head)
        is_table = name and schema is not None and not any(find_faults(schema, name))
        return f"{_PARQUET}({name})" if is_table else None

    def near_miss(self, path: str, head: bytes) -> str | None:
        """Return why a file that is named like a table of Xatu, or has its columns, is none."""
        name, schema = table_of(path), schema_of(path, head)
        if not head.startswith(b"PAR1"):
            return None
        if schema is None:
            return INCOMPLETE if name else None
        if name:
            return "; ".join(find_faults(schema, name)) or None
        return NOT_NAMED if {TIME, SENTRY} <= set(schema.names) else None

    def splits(self, files: Sequence[InputFile]) -> list[InputSplit]:
        """Return a split for each row group."""
        return splits_by_group(enumerate(files))

    def reader(self, source_input: SourceInput) -> SplitReader:
        """Return the reader of Parquet, which knows sentries by their keys."""
        judge, only = TraceJudge.of(source_input), source_input.options.only
        has_keys = any(TABLES[table_of(path) or ""].other is None for path in source_input.paths)
        names = source_input.count_first(KeyReader()) if has_keys else ()
        return TableReader(judge, only, _sentries_by_key(names))

    def make_fold(self, source_input: SourceInput) -> EventFold:
        """Create the fold. For the first time of an event no keys of sentries are needed."""
        return super().make_fold(replace(source_input, count_first=lambda _: ()))

    def describe(self, counted: RunCounts, options: SourceOptions) -> RunDescription:
        """Describe the run like Libp2p, with the network. Raises: InputError for several ones,
        UnknownName for one that the input does not have.
        """
        tally = TraceTally.of(counted)
        networks = sorted(tally.networks)
        if options.only is not None and options.only not in networks:
            raise UnknownName("network", options.only, networks, "--input-run")
        if options.only is None and len(networks) > 1:
            raise InputError(
                f"{SEVERAL_NETWORKS}: {', '.join(networks)}",
                f"name the one to read, for example: --input-run {networks[0]}",
            )
        description = super().describe(counted, options)
        lacking = (fact for fact, of in _NEEDED_FOR.items() if not _has(tally, of))
        counts = {UNJOINED: tally.unjoined, REPEATED: tally.repeated}
        return replace(
            description,
            parameters={"network": options.only or networks[0]},
            unknown=(*lacking, *_NEVER_KNOWN),
            notes={**description.notes, **{name: of for name, of in counts.items() if of}},
        )

    def observe(self, run: RunDescription, options: SourceOptions) -> ObservedTables:
        """Return the tables of Libp2p as far as tables of the input tell them."""
        observed, tally = super().observe(run, options), TraceTally.of(run.totals)

        def if_known(fact: str, text: str | None) -> str | None:
            return text if _has(tally, _NEEDED_FOR[fact]) else None

        receptions = "FROM folded.receptions"
        if _has(tally, PAYLOADS) and _has(tally, ("deliver_message",)):
            receptions = _ONE_FIRST
        return replace(
            observed,
            presence=if_known("presence", observed.presence),
            links=if_known("links", observed.links),
            subscriptions=if_known("topics", observed.subscriptions),
            attributes="FROM folded.attributes",
            traffic=None,
            control=_control_text(tally),
            publications=if_known("messages", _NO_PUBLICATIONS),
            receptions=if_known("messages", receptions),
            rejections=if_known("messages", NO_REJECTIONS),
            sizes=if_known("messages", "FROM folded.sizes"),
        )


def _has(tally: TraceTally, names: Iterable[str]) -> bool:
    return any(tally.tables[name] for name in names)


def _control_text(tally: TraceTally) -> str | None:
    """Return the SQL text of control; what went a way whose RPCs are not in the input is left
    out.
    """
    if not _has(tally, ENTRIES) or not _has(tally, WAYS):
        return None
    lacking = [way for table, way in _WAYS.items() if not tally.tables[table]]
    columns = ", ".join(f"{of}_{way}" for way in lacking for of in ("messages", "ids"))
    return f"SELECT * EXCLUDE ({columns}) FROM folded.control" if lacking else "FROM folded.control"


def _sentries_by_key(names: Tallies) -> Mapping[str, str]:
    """Return the name of the sentry of each key. A key of several sentries is none: until 2026,
    tables had the key of an empty id.
    """
    sentries: dict[str, set[str]] = {}
    for tally in names:
        for key, of_key in tally.items():
            sentries.setdefault(key, set()).update(of_key)
    return {key: next(iter(of_key)) for key, of_key in sentries.items() if len(of_key) == 1}
