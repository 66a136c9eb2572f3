"""The reports of all peers: neighbours, topics, traffic and messages.

NDJSON by the contract of vizpub.reports.files, several intervals to a file. Lines are put
together as text, because there are millions of them; a test reads them back with the contract's
reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from benchmarks.dissemination import (
    FANOUT,
    INTERVAL_US,
    Messages,
    Receptions,
    messages,
    subscriptions,
)
from benchmarks.overlay import Step, history
from benchmarks.sizes import Size
from vizpub.reports.files import ReportWriter
from vizpub.reports.records import RunHeader

FILE_INTERVALS = 25
CONTROL_BYTES, MESSAGE_BYTES = 100, 512
HEADER = RunHeader(run="benchmark", interval_us=INTERVAL_US)
_FASTEST = 1

Entries = defaultdict[int, list[str]]
"""Entries of a report, as JSON, by peer."""


def write_reports(size: Size, folder: Path) -> None:
    """A file of reports for each `FILE_INTERVALS` intervals."""
    steps = zip(history(size), _events(size), strict=True)
    heads = _heads(size)
    for first in range(0, size.intervals, FILE_INTERVALS):
        path = folder / f"from-{first:05}.ndjson.gz"
        with ReportWriter(path, HEADER, compression=_FASTEST) as writer:
            for step, (sent, received) in islice(steps, FILE_INTERVALS):
                for line in _reports(step, heads, sent, received):
                    writer.write_lines(line.encode())


def first_interval(path: Path) -> int:
    """The first interval in a file of reports."""
    return int(path.name.partition("-")[2][:5])


def _heads(size: Size) -> list[str]:
    """The constant part of a peer's reports."""
    entries: Entries = defaultdict(list)
    for peer, topic in zip(*subscriptions(size), strict=True):
        entries[peer].append(f'"{topic}"')
    return [
        f'{{"format":"vizpub.report/1","peer":"{peer}","topics":[{",".join(entries[peer])}]'
        for peer in range(size.peers)
    ]


def _reports(step: Step, heads: Sequence[str], sent: Entries, received: Entries) -> Iterator[str]:
    """A line per peer."""
    names = [f'"{peer}"' for peer in range(len(heads))]
    in_degrees = np.bincount(step.targets.ravel(), minlength=len(heads)).tolist()
    for peer, row in enumerate(step.targets.tolist()):
        neighbors = ",".join([names[target] for target in row])
        counts = f'"sent":{_control(len(row))},"received":{_control(in_degrees[peer])}'
        yield (
            f'{heads[peer]},"interval":{step.interval},"neighbors":[{neighbors}],'
            f'"control":{{{counts}}},"sent":[{",".join(sent.get(peer, ()))}],'
            f'"received":[{",".join(received.get(peer, ()))}]}}\n'
        )


def _control(count: int) -> str:
    return f'{{"messages":{count},"bytes":{CONTROL_BYTES * count}}}'


def _events(size: Size) -> Iterator[tuple[Entries, Entries]]:
    """Messages that each peer sent and received in each interval."""
    published, arrivals = messages(size)
    edges = np.arange(size.intervals + 1) * INTERVAL_US
    for first, stop in pairwise(np.searchsorted(published.time_us, edges)):
        sent: Entries = defaultdict(list)
        received: Entries = defaultdict(list)
        for message in range(first, stop):
            _tell(message, published, arrivals, (sent, received))
        yield sent, received


def _tell(
    message: int, published: Messages, arrivals: Receptions, entries: tuple[Entries, Entries]
) -> None:
    """Add the entries of a message, down its tree."""
    sent, received = entries
    topic, publisher, start = (int(column[message]) for column in published)
    is_of_message = arrivals.message == message
    peers = [publisher, *arrivals.peer[is_of_message].tolist()]
    times = [start, *arrivals.time_us[is_of_message].tolist()]
    hops = [0, *arrivals.hop[is_of_message].tolist()]
    about = f'{{"message":"{message:06}","topic":"{topic}","publisher":"{publisher}"'
    for place, peer in enumerate(peers):
        facts = f'"hops":{hops[place]},"time_us":{times[place]},"bytes":{MESSAGE_BYTES}}}'
        if place:
            parent = peers[(place - 1) // FANOUT]
            received[peer].append(f'{about},"from":"{parent}",{facts}')
        if to := peers[place * FANOUT + 1 :][:FANOUT]:
            receivers = ",".join(f'"{peer}"' for peer in to)
            sent[peer].append(f'{about},"to":[{receivers}],{facts}')
