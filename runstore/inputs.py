"""The files that a run was made from: the last of them in run.json, all earlier ones in a table.

A run that is fed file by file has thousands of them, and run.json is written with every commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from vizpub.runstore import durable
from vizpub.runstore.collection import Collected
from vizpub.runstore.integrity import PARQUET, dataset, describe_file, files_of
from vizpub.runstore.manifest import INPUTS, Manifest
from vizpub.runstore.writer import RunWriter

LISTED = 64
"""Files that run.json lists, before all of them go into the table."""
_TABLE = "staged/inputs"
_SCHEMA = pa.schema(
    [("path", pa.string()), ("encoding", pa.string()), ("size", pa.int64())]
    + [(name, pa.string()) for name in ("sha256", "damage")]
)


def all_inputs(directory: Path, run: Manifest) -> Iterator[dict[str, Any]]:
    """The entry of every file, in the order in which they came; batches that were moved or restored
    with the workspace have their present path. Raises: StoreBroken.
    """
    of = Collected(directory.parents[1], directory.name)
    batches = of.batches if of.owns(run) else None
    for file in _stored_inputs(directory, run):
        moved = batches / Path(file["path"]).name if batches else None
        yield file | {"path": str(moved.absolute())} if moved and moved.exists() else file


def _stored_inputs(directory: Path, run: Manifest) -> Iterator[dict[str, Any]]:
    entry = run.carry.get(INPUTS)
    for part in entry.parts if entry else ():
        for batch in dataset(files_of(directory, part, INPUTS), _SCHEMA).to_batches():
            yield from batch.to_pylist()
    yield from run.inputs


def shorten_inputs(writer: RunWriter, run: Manifest, base: Manifest | None) -> Manifest:
    """The run with its files moved into the table, if run.json would list too many; `base` is the
    run that it adds to. Files that are damaged stay in run.json.
    """
    entry = base.carry.get(INPUTS) if base else None
    moved = [file for file in run.inputs if not file.get("damage")]
    if len(moved) > LISTED:
        directory = writer.fresh_directory(_TABLE)
        directory.mkdir(parents=True)
        path = directory / f"{uuid4().hex}.parquet"
        pq.write_table(pa.Table.from_pylist(moved, _SCHEMA), path, **PARQUET)
        durable.sync_file(path)
        older = writer.merge(_TABLE, entry.parts) if entry else ()
        entry = writer.entry_of(directory, (describe_file(path),), older)
        size = run.earlier_bytes + sum(file["size"] for file in moved)
        rest = tuple(file for file in run.inputs if file.get("damage"))
        run = replace(run, inputs=rest, earlier_bytes=size)
    return replace(run, carry={**run.carry, INPUTS: entry}) if entry else run


def drop_inputs(
    writer: RunWriter, run: Manifest, is_gone: Callable[[dict[str, Any]], bool]
) -> Manifest:
    """The run without the files that are not needed any more, to rebuild it either."""
    files = [*_stored_inputs(writer.directory, run)]
    needed = tuple(file for file in files if not is_gone(file))
    if len(needed) == len(files):
        return run
    carry = {name: entry for name, entry in run.carry.items() if name != INPUTS}
    return shorten_inputs(
        writer, replace(run, inputs=needed, earlier_bytes=0, carry=carry), base=None
    )
