"""The inputs of a size, made on first use and kept."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dissemination import subscriptions
from benchmarks.overlay import history
from benchmarks.reports import write_reports
from benchmarks.sizes import Size
from vizpub.model.clock import OPEN

FORMAT = 1
"""Raised when the made inputs change."""


def filled_folder(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, filled by `make` if it does not exist; never half full."""
    if not folder.is_dir():
        unfinished = folder.with_name(f".{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


class Inputs:
    """Where the inputs of a size are, below `root`."""

    def __init__(self, size: Size, root: Path) -> None:
        self.size = size
        self.folder = root / "inputs" / f"{size.key}-f{FORMAT}"

    @property
    def versions(self) -> Path:
        """links.parquet, presence.parquet and subscriptions.parquet."""
        return filled_folder(self.folder / "versions", lambda out: write_versions(self.size, out))

    @property
    def reports(self) -> Path:
        """Files of reports."""
        return filled_folder(self.folder / "reports", lambda out: write_reports(self.size, out))

    def rewritten(self, how: str) -> Path:
        """The same reports in other words, by a function of `REWRITERS`."""

        def rewrite(out: Path) -> None:
            for path in sorted(self.reports.iterdir()):
                with gzip.open(path, "rt") as lines, gzip.open(out / path.name, "wt", 1) as file:
                    file.writelines(REWRITERS[how](lines))

        return filled_folder(self.folder / how, rewrite)


def _reorder(lines: Iterator[str]) -> Iterator[str]:
    """The fields in reverse, with the spaces that most programs write."""
    for line in lines:
        yield json.dumps(dict(reversed(json.loads(line).items()))) + "\n"


def _escape(lines: Iterator[str]) -> Iterator[str]:
    """A hundredth of the lines has an escape, so that they need the judge of the contract."""
    for number, line in enumerate(lines):
        yield line if number % 100 else line.replace('"peer":"', '"\\u0070eer":"', 1)


REWRITERS: Mapping[str, Callable[[Iterator[str]], Iterator[str]]] = {
    "reordered": _reorder,
    "escaped": _escape,
}


def write_versions(size: Size, folder: Path) -> None:
    """The tables of versions, sorted, as vizpub.model.tables has them (links without layer,
    topic)."""
    links = pa.concat_tables(step.ended for step in history(size))
    pq.write_table(
        links.sort_by([("src", "ascending"), ("dst", "ascending"), ("valid_from", "ascending")]),
        folder / "links.parquet",
    )
    held = dict(zip(("peer", "topic"), subscriptions(size), strict=True))
    for name, keys in (("presence", {"peer": np.arange(size.peers)}), ("subscriptions", held)):
        count = len(keys["peer"])
        spans = {"valid_from": np.zeros(count, np.int64), "valid_to": np.full(count, OPEN)}
        columns = {key: values.astype(np.int32) for key, values in keys.items()}
        pq.write_table(pa.table({**columns, **spans}), folder / f"{name}.parquet")
