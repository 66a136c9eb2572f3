"""Other programs that read a table's folder in a run again and again, each in a process of its own.

They know nothing of vizpub but where the folder is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from vizpub.model.tables import LINKS

ROOT = Path(__file__).parents[2]
NOTHING = "nothing"
"""What is told where no file was found."""
_SAID = (
    *("No such file", "No files found"),
    # Spark has several names for it, and one more for a folder without files.
    *("PATH_NOT_FOUND", "java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"),
    "UNABLE_TO_INFER_SCHEMA",
)
"""The words by which the programs say so."""


def digest(rows: pa.Table) -> str:
    """Of the rows of links, in any order."""
    shape = pa.schema([field.with_nullable(True) for field in LINKS.arrow])
    whole = rows.select(LINKS.names).cast(shape)
    ordered = whole.sort_by([(name, "ascending") for name in LINKS.names])
    return hashlib.blake2b(repr(ordered.to_pylist()).encode(), digest_size=12).hexdigest()


def _pandas(folder: str) -> pa.Table | None:
    import pandas as pd

    found = pd.read_parquet(folder)
    # Without a file it has no columns.
    return pa.Table.from_pandas(found, preserve_index=False) if len(found.columns) else None


def _duckdb(folder: str) -> pa.Table:
    import duckdb

    with duckdb.connect() as database:
        return database.sql(f"FROM '{folder}/*.parquet'").to_arrow_table()


def _polars(folder: str) -> pa.Table:
    import polars

    return polars.read_parquet(folder).to_arrow()


def _spark(folder: str) -> pa.Table:
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    session = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    return session.read.parquet(folder).toArrow()


PROGRAMS = ("pandas", "duckdb", "polars")
"""Those that start at once."""
SPARK = "spark"


def _reader(program: str) -> Callable[[str], pa.Table | None]:
    readers = {"pandas": _pandas, "duckdb": _duckdb, "polars": _polars, SPARK: _spark}
    return readers[program]


def _read(read: Callable[[str], pa.Table | None], folder: str) -> str:
    try:
        rows = read(folder)
    except Exception as error:
        said = "".join(traceback.format_exception(error))
        if any(words in said for words in _SAID):
            return NOTHING
        # Spark lists the files first; it names one that is gone when it reads the footer.
        unread = re.search(r"CANNOT_READ_FILE_FOOTER.* file:(\S+\.parquet)", said)
        if unread and not Path(unread[1]).exists():
            return NOTHING
        raise
    return NOTHING if rows is None else digest(rows)


def main(program: str, folder: str, begun: Path, stop: Path) -> None:
    """Read until there is a file `stop`, and once more; print how often what was read."""
    read = partial(_read, _reader(program))
    found = Counter([read(folder)])
    begun.touch()
    while not stop.exists():
        found[read(folder)] += 1
    found[read(folder)] += 1  # in the end, so that at least two states are seen
    print(json.dumps(found))


@contextmanager
def reading(folder: Path, place: Path, programs: list[str]) -> Iterator[dict[str, Counter[str]]]:
    """The programs read the folder during the block; what each has read is told after it. `place`
    is a folder for files of theirs.
    """
    stop, found = place / "stop", dict[str, Counter[str]]()
    begun = {program: place / f"{program} has begun" for program in programs}
    command = [sys.executable, "-m", "tests.support.foreign"]
    readers = {
        program: subprocess.Popen(
            [*command, program, str(folder), str(begun[program]), str(stop)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            text=True,
        )
        for program in programs
    }
    try:
        for program, reader in readers.items():
            while not begun[program].exists():
                assert reader.poll() is None, f"{program} ended"
                time.sleep(0.02)
        yield found
    finally:
        stop.touch()
        said = {program: reader.communicate()[0] for program, reader in readers.items()}
    for program, reader in readers.items():
        assert reader.returncode == 0, program
        found[program] = Counter(json.loads(said[program]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
