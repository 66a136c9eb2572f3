"""The first load of a run into an empty database: files, and one import of all of them.

`database import full` fills a database several times faster than transactions can, but only one
whose server is stopped, and it puts an end to what the database had. So a database is taken
only if it was seen to be empty, and nothing was committed in it since. What the import makes
are the nodes and relationships of the run; the rest (metrics, labels, indexes, verification)
is the same as in any load, and vizpub.graphstore.load.transactions goes on with it.

The files are CSV. Neo4j reads Parquet too, but its later 5.26 only with classes of Hadoop that
it does not bring along; and CSV is read no slower.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from neo4j import Driver

from vizpub import cypher
from vizpub.graphstore.load.batches import LABELS, Batch, Tables, numbers
from vizpub.graphstore.load.partitions import Partitions, chosen_partitions
from vizpub.graphstore.load.reading import Reading
from vizpub.graphstore.load.steps import NodeStep, Step, passes
from vizpub.graphstore.load.transactions import LoadSummary, load_run
from vizpub.graphstore.runs import is_of_other_tables, run_names, run_properties
from vizpub.graphstore.server import sessions
from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.offline import OnLine, Place, Tool, alone, last_transaction
from vizpub.model.errors import FULL, DiskFull, UseError
from vizpub.model.progress import Progress, silent
from vizpub.model.run import RunFacts

PAYING_ROWS = 500_000
"""From this many rows on an import is faster: stopping, starting and the tool take as long
as transactions with this many rows (measured: docs/loading.md)."""

_TYPES = {pa.int32(): ":long", pa.int64(): ":long", pa.bool_(): ":boolean", pa.string(): ""}
_PRIVATE = {"start": ":START_ID", "end": ":END_ID", "type": ":TYPE"}
_NO_PLACE = (
    "--bulk stops Neo4j while it imports, and the one that NEO4J_URI names cannot be stopped "
    "from here; name its container with --container NAME, or load without --bulk"
)
_TOLD = re.compile(r"^\(\d/\d\) (?P<phase>\D+?) \d{4}-|(?P<percent>\d+)% ∆")


@dataclass(frozen=True)
class Emptiness:
    """A database was seen to be empty after its transaction `last`."""

    database: str
    last: int


@dataclass(frozen=True)
class Target:
    """Where and how to load a run. Raises: UseError for what cannot be done."""

    connection: Connection
    place: Place | None = None
    """Where its server can be stopped; null = it cannot."""
    bulk: bool | None = None
    """Whether to import; null = where it can be done and pays."""
    partition_intervals: int | None = None
    """Length of the time partitions; 0 = none, null = by the run's size."""

    def __post_init__(self) -> None:
        if self.bulk and not self.place:
            raise UseError(_NO_PLACE)


def load(
    target: Target, facts: RunFacts, tables: Tables, progress: Progress | None = None
) -> LoadSummary:
    """As vizpub.graphstore.load.transactions.load_run, by an import of all that can be imported if
    that is wanted. Of several at once into a server that can be stopped, one goes on and the others
    wait.

    Raises: UseError where an import is demanded and cannot be done, and as `load_run`.
    """
    connection, place, tables = target.connection, target.place, Reading.of(tables, facts.clock)
    with alone(place.load_lock(), progress or silent) if place else nullcontext():
        if place:
            _import_if_wanted(target, place, facts, tables, progress)
            connection = place.start()  # its port may be another one now
        with connect(connection) as driver:
            return load_run(
                driver, connection.database, facts, tables, progress, target.partition_intervals
            )


def _import_if_wanted(
    target: Target, place: Place, facts: RunFacts, tables: Tables, progress: Progress | None
) -> None:
    """Import the run where that is wanted and can be done; `load_run` is to go on with it."""
    if target.bulk is False or not (target.bulk or pays(tables)):
        return
    database = target.connection.database
    with connect(place.start()) as driver:
        there = run_properties(driver, database, facts.name) or {}
        if there.get("imported") or _is_whole(there, facts):
            return
        empty = find_empty(driver, database)
    if empty and import_run(place, empty, facts, tables, progress, target.partition_intervals):
        return
    if target.bulk:
        with connect(place.start()) as driver:
            raise _not_empty(driver, database)


def _is_whole(there: Mapping[str, Any], facts: RunFacts) -> bool:
    return there.get("state") == "complete" and not is_of_other_tables(there, facts)


def pays(tables: Tables) -> bool:
    """Whether a run is so large that an import is faster, the stop and start included."""
    large = ("links", "receptions", "subscriptions", "presence")
    return sum(map(tables.rows, large)) >= PAYING_ROWS


def find_empty(driver: Driver, database: str) -> Emptiness | None:
    """Whether a database is empty: it has no nodes and so no relationships.

    Raises: Neo4jUnavailable, Neo4jAnswer.
    """
    text = cypher.statement("read", "nodes").text
    with sessions.reading(driver, database) as session:
        session.run(text).consume()
        last = transaction_of(*session.last_bookmarks().raw_values)
        # Later than the bookmark: what is committed in between is later than `last`.
        nodes = session.run(text).single(strict=True)["nodes"]
    # The name of its files is in small letters, whatever the one it is asked by.
    return None if nodes else Emptiness(database.lower(), last)


def transaction_of(bookmark: str) -> int:
    """The last transaction that a bookmark of one database names; Community shows it nowhere else.

    In a bookmark of another form it is another number, and then nothing is imported.
    """
    # 19 bytes with the id of the database, a number as PackStream has it, an empty list.
    packed = base64.b64decode(bookmark.partition(":")[2])[19:-1]
    return int.from_bytes(packed[1:] or packed, "big")


def _not_empty(driver: Driver, database: str) -> UseError:
    """Why a run cannot be imported into a database, and what to do."""
    runs = run_names(driver, database)
    there = (
        f"run{'s' * (len(runs) > 1)} {', '.join(runs)}" if runs else "nodes that belong to no run"
    )
    return UseError(f"--bulk needs an empty Neo4j, and this one has {there}; load without --bulk")


def require_alone(driver: Driver, database: str, run: str) -> None:
    """Raises: UseError where a database will not be empty when the run is removed."""
    if others := [name for name in run_names(driver, database) if name != run]:
        raise UseError(
            f"--bulk needs an empty Neo4j, and this one has other runs ({', '.join(others)}); "
            "rebuild without --bulk"
        )


def import_run(
    place: Place,
    empty: Emptiness,
    facts: RunFacts,
    tables: Tables,
    progress: Progress | None = None,
    partition_intervals: int | None = None,
) -> bool:
    """Stop the server, import the nodes and relationships of a run, start the server again.

    The run is there in the state `loading` then, and `vizpub.graphstore.load.transactions.load_run`
    makes it complete. False, and nothing imported, where the database is not empty any more. If
    this does not come to its end the database is as empty as before.

    Raises: DiskFull where the files find no room, Neo4jUnavailable, and what starting the
    server raises.
    """
    progress = progress or silent
    reading = Reading.of(tables, facts.clock)
    partitions = chosen_partitions(facts.clock, tables, partition_intervals)
    with place.staging() as folder:
        files = _staged(_Staging(folder, facts, reading, partitions, progress))
        progress("stop Neo4j", 0, 0)
        with place.stopped() as tool:
            if last_transaction(tool, empty.database) != empty.last:
                return False
            with tool.remaking(empty.database) as new:
                _import(tool, new, folder, files, _told(progress))
            progress("start Neo4j", 0, 0)
    return True


def _staged(staging: _Staging) -> list[_File]:
    try:
        return staging.write()
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DiskFull(str(staging.folder)) from error


@dataclass(frozen=True)
class _File:
    """A file of nodes or relationships."""

    name: str
    group: str
    """As `nodes=Peer` or `relationships=LINK`."""
    has_lines: bool = False
    """Some text in it has a line break."""


def _import(
    tool: Tool, database: str, folder: Path, files: Sequence[_File], on_line: OnLine
) -> None:
    there = tool.place(folder)
    has_lines = any(file.has_lines for file in files)
    tool.run(
        *("database", "import", "full", database),
        "--overwrite-destination",
        "--id-type=integer",
        f"--multiline-fields={str(has_lines).lower()}",
        f"--report-file={there}/report",
        *(f"--{file.group}={there}/{file.name}" for file in files),
        on_line=on_line,
    )


def _told(progress: Progress) -> OnLine:
    """Takes lines as `(2/4) Relationship import 2026-…` and `..... ..... 15% ∆3s`."""
    phase = "import"

    def on_line(line: str) -> None:
        nonlocal phase
        if found := _TOLD.search(line):
            phase = f"import ({found['phase'].lower()})" if found["phase"] else phase
            progress(phase, int(found["percent"] or 0), 100)

    return on_line


@dataclass(frozen=True)
class _Staging:
    """Writes the files of a run, batch by batch."""

    folder: Path
    facts: RunFacts
    reading: Reading
    partitions: Partitions
    progress: Progress

    def write(self) -> list[_File]:
        """All of them; none for a step without rows."""
        tables = passes(self.reading.run_rows(self.facts.name, self.partitions)).items()
        made = [self._table(name, [s for s in steps if s.creates]) for name, steps in tables]
        return [self._run(), *chain.from_iterable(made)]

    def _run(self) -> _File:
        """The run's own node, marked as imported and not whole yet."""
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
        """What its rows become, a file a step."""
        if not steps:
            return []
        done, total = 0, self.reading.rows(table)
        has_lines = dict.fromkeys(steps, False)
        with ExitStack() as opened:
            writers: dict[Step, pa.csv.CSVWriter] = {}
            for _, batch in self.reading.row_groups(table):
                for step in steps:
                    rows = self._laid_out(step, batch)
                    if step not in writers:
                        file = pa.csv.CSVWriter(self.folder / _name(step), rows.schema)
                        writers[step] = opened.enter_context(file)
                    writers[step].write_batch(rows)
                    has_lines[step] = has_lines[step] or _has_lines(rows)
                done += batch.num_rows
                self.progress(f"write {steps[0].statement}", done, total)
        return [_File(_name(step), step.group, has_lines[step]) for step in steps if done]

    def _laid_out(self, step: Step, batch: Batch) -> Batch:
        """A batch with the columns that the import wants, their types in their names."""
        rows = step.shape(batch)
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
