"""What a program gets, and how it runs: a task is a function from this to an Arrow table.

    python -m benchmarks.snapshots.by_igraph RECORD.json ANSWER.parquet FOLDER TASK INTERVAL...

Answers, by task (TASKS):
metrics      interval, peer and the columns of vizpub's metrics/peers, of the given intervals
betweenness  peer, betweenness (normalised), of the graph of all events
as-of        links, hops: of each query, the links of the day, and those of a shortest path
reachability peer, arrival: the first day after which the peer can have what the source had at
             the beginning, if it takes a day to pass a link
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.steps import Steps

TASKS = ("metrics", "betweenness", "as-of", "reachability")
NO_PATH = -1
COMPONENTS = ("component", "strong_component")
"""Columns with the place of a peer; answers have its name."""
COLUMNS = (
    *("in_degree", "out_degree", "degree", "clustering", "betweenness", "mean_distance"),
    *("closeness", "eccentricity", "reachable_peers", *COMPONENTS),
)
"""What is measured of peers. Four metrics of the snapshot follow (benchmarks.snapshots.answers)."""


class Snapshot(NamedTuple):
    """The graph of a day: its peers, and its links by their places among them."""

    interval: int
    peers: np.ndarray
    links: tuple[np.ndarray, np.ndarray]

    def row(self, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
        """What was measured of the peers, with their names."""
        key = {"interval": np.full(len(self.peers), self.interval), "peer": self.peers}
        found = {
            name: self.peers[np.asarray(values)]
            if name in COMPONENTS
            else pa.array(values, pa.float64())
            for name, values in columns.items()
        }
        return pa.table(key | found)


@dataclass(frozen=True)
class Given:
    """The files of a graph, read when they are needed."""

    folder: Path
    intervals: Sequence[int]
    """Those to measure; all, if there is none."""

    @property
    def events(self) -> Path:
        """Lines `SRC DST SECONDS`."""
        return self.folder / "events.txt"

    @property
    def step(self) -> str:
        """The length of an interval."""
        return (self.folder / "step").read_text()

    @cached_property
    def rows(self) -> pa.Table:
        """interval, src, dst"""
        return pq.read_table(self.folder / "snapshots.parquet")

    @property
    def total(self) -> int:
        """The number of snapshots."""
        return int(self.rows["interval"][-1].as_py()) + 1

    @cached_property
    def queries(self) -> list[tuple[int, int, int]]:
        """Day, and two peers with links on it."""
        rows = pq.read_table(self.folder / "queries.parquet")
        return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    @property
    def source(self) -> int:
        """The peer of the first event."""
        return int(self.rows["src"][0].as_py())

    def links_at(self, interval: int) -> tuple[np.ndarray, np.ndarray]:
        """The sources and targets of a day."""
        days = self.rows["interval"].to_numpy()
        first, last = np.searchsorted(days, [interval, interval + 1])
        rows = self.rows.slice(first, last - first)
        return rows["src"].to_numpy(), rows["dst"].to_numpy()

    def snapshots(self) -> Iterator[Snapshot]:
        """The days to measure, with all peers that are present."""
        presence = pq.read_table(self.folder / "presence.parquet")
        for day in self.intervals:
            is_present = (pc.field("valid_from") <= day) & (pc.field("valid_to") > day)
            peers = presence.filter(is_present)["peer"].to_numpy()
            yield make_snapshot(day, peers, self.links_at(day))

    @property
    def whole(self) -> Snapshot:
        """The graph of all events."""
        pairs = self.rows.group_by(["src", "dst"]).aggregate([])
        src, dst = pairs["src"].to_numpy(), pairs["dst"].to_numpy()
        return make_snapshot(0, np.union1d(src, dst), (src, dst))


def make_snapshot(day: int, peers: np.ndarray, links: tuple[np.ndarray, np.ndarray]) -> Snapshot:
    """A graph whose links are given by names."""
    src, dst = (np.searchsorted(peers, ends) for ends in links)
    return Snapshot(day, peers, (src, dst))


Task = Callable[[Given], pa.Table]


def measure_by(
    make_graph: Callable[..., Any], structure: Callable[..., Any], betweenness: Callable[..., Any]
) -> tuple[Task, *tuple[Callable[..., Any], ...]]:
    """The task metrics by the functions of a library, and these functions."""

    def measure(given: Given) -> pa.Table:
        """Fifteen metrics of each day."""
        parts = []
        for snapshot in given.snapshots():
            graph = make_graph(snapshot.links, len(snapshot.peers))
            columns = {**structure(graph), "betweenness": betweenness(graph)}
            parts.append(snapshot.row(columns))
        return pa.concat_tables(parts)

    return measure, make_graph, structure, betweenness


def run(package: str, tasks: Mapping[str, tuple[Task, *tuple[Callable[..., Any], ...]]]) -> None:
    """Do the task that the command line names. Behind a task are the functions that it uses: the
    lines of all are counted as those that a user writes.
    """
    record, answer, folder, name, *intervals = sys.argv[1:]
    given, steps = Given(Path(folder), [*map(int, intervals)]), Steps()
    task, *used = tasks[name]
    with steps.step(name):
        rows = task(given)
    pq.write_table(rows, answer)
    steps.write(Path(record), package, lines=sum(map(count_lines, (task, *used))))


def count_lines(function: Callable[..., Any]) -> int:
    """The lines of a function without its docstring, comments and blank lines."""
    source = textwrap.dedent(inspect.getsource(function))
    lines = source.splitlines()
    if function.__doc__:
        docstring = cast("ast.FunctionDef", ast.parse(source).body[0]).body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return sum(line.lstrip()[:1] not in ("", "#") for line in lines)
