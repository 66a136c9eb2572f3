"""The load of one more interval into a copy in Neo4j, against the load of everything before:
`python -m benchmarks.growing`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from neo4j import Driver

from benchmarks.histories import LongRun
from benchmarks.parts import WORK
from benchmarks.sizes import Size
from vizpub.graphstore.load.reading import rows_since
from vizpub.graphstore.load.transactions import load_run
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.server import LocalServer
from vizpub.model.clock import OPEN
from vizpub.model.run import Boundary, RunFacts

HOME = WORK / "growing"
SIZE = Size("growing", peers=1_000, intervals=0, links=20, topics=20)
LENGTHS = (20, 80)
"""Intervals of the runs; each grows by its last one."""


@dataclass(frozen=True)
class Until:
    """What was known of a run before an interval; for the whole run, before its last interval."""

    run: LongRun
    interval: int

    @property
    def facts(self) -> RunFacts:
        """Of a generation as large as the interval."""
        facts = self.run.facts
        clock, tables = replace(facts.clock, last=self.interval - 1), str(self.interval)
        return replace(facts, clock=clock, tables=tables, generation=self.interval)

    def row_groups(self, name: str) -> Iterable[tuple[str, pa.RecordBatch]]:
        """A table, batch by batch, what goes on with an open end."""
        for label, rows in self.run.row_groups(name):
            yield label, self._rows_before(rows)

    def rows_from(self, name: str, column: str, least: int) -> Iterable[pa.RecordBatch]:
        """Those whose `column` is `least` or more."""
        return rows_since(self.row_groups(name), column, least)

    def rows(self, name: str) -> int:
        """How many rows a table has."""
        return sum(len(rows) for _, rows in self.row_groups(name))

    def boundary_since(self, tables: str) -> Boundary:
        """One that needs no list: an interval is a tick, and messages arrive where they begin."""
        interval = int(tables)
        return Boundary(interval, interval, Until(self.run, interval).rows("publications"))

    def is_current(self) -> bool:
        """Nothing else changes it."""
        return True

    def _rows_before(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        names = rows.schema.names
        if "valid_from" in names:
            begun_rows = rows.filter(pc.less(rows["valid_from"], self.interval))
            ended = pc.less(begun_rows["valid_to"], self.interval)
            ends = pc.if_else(ended, begun_rows["valid_to"], OPEN)
            return begun_rows.set_column(
                names.index("valid_to"), begun_rows.schema.field("valid_to"), ends
            )
        if "interval" in names:
            return rows.filter(pc.less(rows["interval"], self.interval))
        if "message" in names:
            published = Until(self.run, self.interval).rows("publications")
            return rows.filter(pc.less(rows["message"], published))
        return rows


def main() -> None:
    """Print the seconds of each load."""
    server = LocalServer(HOME)
    server.remove()
    try:
        with connect(server.start()) as driver:
            for length in LENGTHS:
                run = LongRun(length, SIZE)
                first, more = (_seconds(driver, Until(run, length - n)) for n in (1, 0))
                times = f"{first:.1f} s for all but one, {more:.1f} s for one more"
                print(f"{length:,} intervals: {times}, {more / first:.2f} of it", flush=True)
    finally:
        server.remove()


def _seconds(driver: Driver, run: Until) -> float:
    start = time.monotonic()
    load_run(driver, "neo4j", run.facts, run, partition_intervals=0)
    return time.monotonic() - start


if __name__ == "__main__":
    main()
