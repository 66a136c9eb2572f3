"""The facts of a run, and what was left out of it, as text for users; and of all runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import pyarrow as pa

from vizpub.model.errors import UseError
from vizpub.model.wording import amount
from vizpub.questions.sums.totals import pool_messages, reporter_count
from vizpub.runstore.changes import state
from vizpub.runstore.collection import Collected
from vizpub.runstore.manifest import LATE, LATE_MESSAGES
from vizpub.runstore.store import BrokenRun, StoredRun

_COUNTED = ("peers", "topics", "links", "publications", "receptions", "quarantine")
_LISTED = pa.schema(
    [(name, pa.string()) for name in ("run", "state", "source", "protocol")]
    + [(name, pa.int64()) for name in ("intervals", "interval_us", *_COUNTED[:-1], "quarantined")]
)


def runs_table(
    stored_runs: Sequence[StoredRun | BrokenRun], retired: Iterable[Collected]
) -> pa.Table:
    """run, state, source, protocol, intervals, interval_us, and rows of tables: by name.

    `retired` are collections whose runs were removed. Unknown is null.
    """
    lines = [_facts_line(run) for run in stored_runs]
    lines += [{"run": collection.run, "state": "retired"} for collection in retired]
    return pa.Table.from_pylist(sorted(lines, key=itemgetter("run")), _LISTED)


def _facts_line(run: StoredRun | BrokenRun) -> dict[str, Any]:
    if isinstance(run, BrokenRun):
        return {"run": run.name, "state": "broken"}
    manifest, clock = run.manifest, run.manifest.clock
    facts = (
        *(run.name, manifest.state, manifest.source, manifest.protocol),
        *((clock.intervals, clock.interval_us) if clock else (None, None)),
        *(run.rows(name) if run.has(name) else None for name in _COUNTED),
    )
    return dict(zip(_LISTED.names, facts, strict=True))


def damaged_inputs(run: StoredRun) -> list[str]:
    """The files of the input that could be read in part only or not at all, with the reason."""
    in_part = [f"{i['path']}: {i['damage']}" for i in run.manifest.inputs if i.get("damage")]
    return in_part + [file for file in run.manifest.skipped if ": cannot be read" in file]


def facts_for_people(run: StoredRun) -> Iterator[tuple[str, Any]]:
    """The facts of a run, and what was left out of it: (fact, value)."""
    manifest = run.manifest
    yield "run", manifest.name
    yield "state", state(run)
    if manifest.collection:
        yield "collection", _of_collection(run)
    yield "source", manifest.source
    yield "protocol", manifest.protocol
    if manifest.clock:
        yield "time", manifest.clock.describe_range()
    if manifest.clock and manifest.is_grown:
        yield "final up to interval", manifest.final
        yield "messages final up to interval", manifest.settled
    yield "epoch", manifest.epoch
    files, size = manifest.input_size
    yield "input", f"{amount(files, 'file')}, {amount(size, 'byte')}"
    if manifest.options.get("layers"):
        yield "layers counted", ", ".join(manifest.options["layers"])
    for name, entry in manifest.tables.items():
        yield f"rows of {name}", entry.rows
    if manifest.complete:
        yield from _messages(run)
        yield from _control_by_kind(run)
    for note, count in manifest.notes.items():
        yield note.replace("_", " ") if note.isidentifier() else note, count
    if {LATE, LATE_MESSAGES} & manifest.notes.keys():
        yield "came late", f"left out of the tables; vizpub runs settle {manifest.name} takes it in"
    for engine in dict.fromkeys(manifest.engines.values()):
        parts = (part for part, by in manifest.engines.items() if by == engine)
        yield f"measured by {engine}", ", ".join(parts)
    yield from (("unknown", name) for name in manifest.unknown)
    damaged = damaged_inputs(run)
    yield from (("damaged", file) for file in damaged)
    yield from (("skipped", file) for file in manifest.skipped if file not in damaged)


def _control_by_kind(run: StoredRun) -> Iterator[tuple[str, str]]:
    """Control messages sent and received, the most frequent kinds first; none where unknown."""
    known = run.has("control") and not run.facts.is_sample
    for way in ("sent", "received") if known else ():
        counts: Counter[str] = Counter()
        for batch in run.scan("control", ["kind", f"messages_{way}"]):
            for kind, count in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if count is not None:
                    counts[kind] += count
        if counts:
            listing = ", ".join(f"{kind}: {count:,}" for kind, count in counts.most_common())
            yield f"control messages {way}", listing


def _of_collection(run: StoredRun) -> str:
    """The state of the collection that makes the run."""
    of = Collected(run.directory.parents[1], run.name)
    if run.manifest.ended:
        return "has ended"
    if not of.owns(run.manifest):
        return "is gone"
    with suppress(UseError):
        if collector := of.collector():
            return f"running ({collector})"
    return f"is paused; resume it with: vizpub live collect {run.name}"


def _messages(run: StoredRun) -> Iterator[tuple[str, Any]]:
    """The figures of messages, without refused ones."""
    reporters, peers = reporter_count(run), run.rows("peers")
    yield "peers that report", f"{reporters:,} of {peers:,}"
    if reporters < peers:
        yield "figures below", "subscriptions, hits and traffic cover only the peers that report"
    pooled = pool_messages(run)
    if pooled is None:
        return
    if pooled.hit_ratio is not None:
        ratio = f"{pooled.delivered:,} of {pooled.eligible:,} = {pooled.hit_ratio:.4f}"
        yield "hit ratio", f"{ratio}; mean over messages {pooled.hit_ratio_mean:.4f}"
    if pooled.refused:
        yield (
            "left out of the hit ratio",
            f"{amount(pooled.refused, 'message')} that a peer refused",
        )
    if pooled.late:
        yield "late deliveries", pooled.late
    if pooled.unreported:
        yield "publication not reported", amount(pooled.unreported, "message")
    if pooled.hops:
        hops = (
            f"{'unknown' if hop is None else hop}: {count:,}" for hop, count in pooled.hops.items()
        )
        yield "first receptions by hops", ", ".join(hops)
