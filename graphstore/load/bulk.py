"""The first load of a run into an empty database: files, and one import of all of them.

`database import full` fills a database several times faster than transactions can. But it needs
a stopped server, and deletes what the database had. So it is used only on a database that was
empty, if nothing was committed since. The import makes the nodes and relationships of the run.
vizpub.graphstore.load.transactions then does the rest (metrics, labels, indexes, verification), as
in any load.

The files are CSV. Neo4j reads Parquet too, but later releases of 5.26 only with Hadoop classes that
they do not include; and CSV is no slower to read.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from neo4j import Driver

from vizpub import cypher
from vizpub.graphstore.load.batches import LABELS, Batch, RunTables, numbers
from vizpub.graphstore.load.partitions import Partitions, choose_partitions
from vizpub.graphstore.load.reading import TableReader
from vizpub.graphstore.load.steps import NodeStep, Step, steps_by_table
from vizpub.graphstore.load.transactions import LoadSummary, load_run
from vizpub.graphstore.runs import has_other_tables, run_names, run_properties
from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.offline import (
    OnLine,
    StoppableServer,
    Tool,
    hold_load_lock,
    last_transaction,
)
from vizpub.model.errors import FULL, DiskFull, UseError
from vizpub.model.progress import Progress, silent
from vizpub.model.run import RunFacts

PAYING_ROWS = 500_000
"""From this many rows on, an import is faster: stopping, starting and the tool take as long
as transactions with this many rows (measured: docs/loading.md)."""

_TYPES = {
    **{pa.int32(): ":long", pa.int64(): ":long", pa.float64(): ":double"},
    **{pa.bool_(): ":boolean", pa.string(): ""},
}
_PRIVATE = {"start": ":START_ID", "end": ":END_ID", "type": ":TYPE"}
_CANNOT_STOP = (
    "--bulk stops Neo4j while it imports, and the one that NEO4J_URI names cannot be stopped "
    "from here; name its container with --container NAME, or load without --bulk"
)
_FOREIGN_NODES = "nodes that belong to no run"
_PROGRESS = re.compile(r"^\(\d/\d\) (?P<phase>\D+?) \d{4}-|(?P<percent>\d+)% ∆")


@dataclass(frozen=True)
class EmptyDatabase:
    """A database that was empty after its transaction `last`."""

    database: str
    last: int


@dataclass(frozen=True)
class LoadTarget:
    """Where and how to load a run. Raises: UseError if that is impossible."""

    connection: Connection
    place: StoppableServer | None = None
    """Its server, if it can be stopped."""
    bulk: bool | None = None
    """True to import, False not to, None = if it is possible and pays."""
    partition_intervals: int | None = None
    """Intervals of a time partition; 0 = none, None = by the run's size."""

    def __post_init__(self) -> None:
        if self.bulk and not self.place:
            raise UseError(_CANNOT_STOP)


def load(
    target: LoadTarget, facts: RunFacts, tables: RunTables, progress: Progress | None = None
) -> LoadSummary:
    """Load a run as `load_run` does, but import as much as possible if that is wanted.

    Of several loads at once into a server that can be stopped, one goes on and the others wait.

    Raises: UseError if an import is demanded and impossible, and as `load_run`.
    """
    connection, place, tables = target.connection, target.place, TableReader.of(tables, facts.clock)
    with hold_load_lock(place.load_lock(), progress or silent) if place else nullcontext():
        if place:
            _import_if_wanted(target, place, facts, tables, progress)
            connection = place.start()  # its port may be another one now
        with connect(connection) as driver:
            return load_run(
                driver, connection.database, facts, tables, progress, target.partition_intervals
            )


def _import_if_wanted(
    target: LoadTarget,
    place: StoppableServer,
    facts: RunFacts,
    tables: RunTables,
    progress: Progress | None,
) -> None:
    """Import the run if that is wanted and possible; `load_run` has to follow."""
    if target.bulk is False or not (target.bulk or import_pays(tables)):
        return
    database = target.connection.database
    with connect(place.start()) as driver:
        properties = run_properties(driver, database, facts.name) or {}
        complete = properties.get("state") == "complete" and not has_other_tables(properties, facts)
        if properties.get("imported") or complete:
            return
        empty = find_empty(driver, database)
    if empty and import_run(place, empty, facts, tables, progress, target.partition_intervals):
        return
    if target.bulk:
        with connect(place.start()) as driver:
            runs = run_names(driver, database)
        others = f"run{'s' * (len(runs) > 1)} {', '.join(runs)}" if runs else _FOREIGN_NODES
        raise UseError(
            f"--bulk needs an empty Neo4j, and this one has {others}; load without --bulk"
        )


def import_pays(tables: RunTables) -> bool:
    """Return True if a run is so large that an import is faster, including stop and start."""
    large = ("links", "receptions", "subscriptions", "presence")
    return sum(map(tables.rows, large)) >= PAYING_ROWS


def find_empty(driver: Driver, database: str) -> EmptyDatabase | None:
    """Return the database with its last transaction if it has no nodes, or else None.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    text = cypher.statement("read", "nodes").text
    with sessions.reading(driver, database) as session:
        session.run(text).consume()
        last = transaction_of(*session.last_bookmarks().raw_values)
        # Read after the bookmark, so that anything committed in between is later than `last`.
        nodes = session.run(text).single(strict=True)["nodes"]
    # Its files have its name in small letters, whatever the name of the query.
    return None if nodes else EmptyDatabase(database.lower(), last)


def transaction_of(bookmark: str) -> int:
    """Return the last transaction that a bookmark of one database names."""
    # Community Edition shows it nowhere else. A bookmark of another form would give another
    # number, and then nothing is imported.
    # 19 bytes with the id of the database, a number as PackStream has it, an empty list.
    packed = base64.b64decode(bookmark.partition(":")[2])[19:-1]
    return int.from_bytes(packed[1:] or packed, "big")


def require_alone(driver: Driver, database: str, run: str) -> None:
    """Raise UseError if a database has other runs than this one."""
    if others := [name for name in run_names(driver, database) if name != run]:
        raise UseError(
            f"--bulk needs an empty Neo4j, and this one has other runs ({', '.join(others)}); "
            "rebuild without --bulk"
        )


def import_run(
    place: StoppableServer,
    empty: EmptyDatabase,
    facts: RunFacts,
    tables: RunTables,
    progress: Progress | None = None,
    partition_intervals: int | None = None,
) -> bool:
    """Stop the server, import the nodes and relationships of a run, start the server again.

    Afterwards the run is in the state `loading`, and `load_run` has to complete it. Returns
    False, with nothing imported, if the database is no longer empty. If the import fails, the
    database is as empty as before.

    Raises: DiskFull if there is no room for the files, Neo4jUnavailable, and the errors of
    starting the server.
    """
    progress = progress or silent
    reading = TableReader.of(tables, facts.clock)
    partitions = choose_partitions(facts.clock, tables, partition_intervals)
    with place.staging_folder() as folder:
        try:
            files = _Staging(folder, facts, reading, partitions, progress).write()
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise DiskFull(str(folder)) from error
        progress("stop Neo4j", 0, 0)
        with place.offline_tool() as tool:
            if last_transaction(tool, empty.database) != empty.last:
                return False
            with tool.replacement(empty.database) as new:
                _run_import(tool, new, folder, files, _report_lines(progress))
            progress("start Neo4j", 0, 0)
    return True


@dataclass(frozen=True)
class _File:
    """A file of nodes or relationships."""

    name: str
    group: str
    """The import's option, such as `nodes=Peer` or `relationships=LINK`."""
    has_lines: bool = False
    """True if any text in the file has a line break."""


def _run_import(
    tool: Tool, database: str, folder: Path, files: Sequence[_File], on_line: OnLine
) -> None:
    path = tool.share(folder)
    has_lines = any(file.has_lines for file in files)
    tool.run(
        *("database", "import", "full", database),
        "--overwrite-destination",
        "--id-type=integer",
        f"--multiline-fields={str(has_lines).lower()}",
        f"--report-file={path}/report",
        *(f"--{file.group}={path}/{file.name}" for file in files),
        on_line=on_line,
    )


def _report_lines(progress: Progress) -> OnLine:
    """Return a function that reports the tool's lines to `progress`."""
    # Lines are like `(2/4) Relationship import 2026-…` and `..... ..... 15% ∆3s`.
    phase = "import"

    def on_line(line: str) -> None:
        nonlocal phase
        if match := _PROGRESS.search(line):
            phase = f"import ({match['phase'].lower()})" if match["phase"] else phase
            progress(phase, int(match["percent"] or 0), 100)

    return on_line


@dataclass(frozen=True)
class _Staging:
    """Writes the files of a run, batch by batch."""

    folder: Path
    facts: RunFacts
    reading: TableReader
    partitions: Partitions
    progress: Progress

    def write(self) -> list[_File]:
        """Write all files; none for a step without rows."""
        tables = steps_by_table(self.partitions).items()
        files = [self._table(name, [s for s in steps if s.creates]) for name, steps in tables]
        return [self._run(), *chain.from_iterable(files)]

    def _run(self) -> _File:
        """Write the run's own node, marked as imported and not complete."""
        name = self.facts.name
        texts = {"key": name, "name": name, "state": "loading", "tables": self.facts.tables or None}
        columns = {name: pa.array([text], pa.string()) for name, text in texts.items()}
        length = pa.array([self.partitions.intervals], pa.int64())
        row = pa.table(
            {":ID": [0], **columns, "imported:boolean": [True], "partition_intervals:long": length}
        )
        pa.csv.write_csv(row, self.folder / "run.csv")
        return _File("run.csv", "nodes=Run")

    def _table(self, table: str, steps: Sequence[Step]) -> list[_File]:
        """Write the nodes and relationships of a table, one file for each step."""
        if not steps:
            return []
        done, total = 0, self.reading.rows(table)
        has_lines = dict.fromkeys(steps, False)
        with ExitStack() as opened:
            writers: dict[Step, pa.csv.CSVWriter] = {}
            for _, batch in self.reading.row_groups(table):
                for step in steps:
                    rows = self._import_batch(step, batch)
                    if step not in writers:
                        file = pa.csv.CSVWriter(self.folder / _name(step), rows.schema)
                        writers[step] = opened.enter_context(file)
                    writers[step].write_batch(rows)
                    has_lines[step] = has_lines[step] or _has_lines(rows)
                done += batch.num_rows
                self.progress(f"write {steps[0].statement}", done, total)
        return [_File(_name(step), step.group, has_lines[step]) for step in steps if done]

    def _import_batch(self, step: Step, batch: Batch) -> Batch:
        """Return a batch with the columns of the import, whose names have their types."""
        rows = step.shape(self.reading.run_rows(self.facts.name, self.partitions), batch)
        columns = {name: rows[name] for name in rows.schema.names}
        if isinstance(step, NodeStep):
            ids = numbers(LABELS.index(step.label), rows[step.id])
            return _batch({":ID": ids}, columns)
        private = {title: columns.pop(name) for name, title in _PRIVATE.items() if name in columns}
        if step.has_run:
            columns["run"] = pa.repeat(pa.scalar(self.facts.name), len(rows))
        return _batch(private, columns)


def _name(step: Step) -> str:
    return f"{step.statement}.csv"


def _batch(private: Mapping[str, pa.Array], properties: Mapping[str, pa.Array]) -> Batch:
    typed = {name + _TYPES[column.type]: column for name, column in properties.items()}
    return pa.RecordBatch.from_pydict({**private, **typed})


def _has_lines(rows: Batch) -> bool:
    texts = [column for column in rows.columns if pa.types.is_string(column.type)]
    return any(pc.any(pc.match_substring_regex(text, "[\r\n]")).as_py() for text in texts)
