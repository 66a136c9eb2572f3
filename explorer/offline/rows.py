"""The rows of a run's tables as arrays, for a page without a server (page/embeddedtables.js)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.explorer import answers
from vizpub.explorer.answers import Answer
from vizpub.explorer.columns import numbers
from vizpub.explorer.packing import pack
from vizpub.explorer.tables import computed_columns, describe_tables
from vizpub.model.arrays import Floats, Integers
from vizpub.model.clock import OPEN
from vizpub.model.columns import Table
from vizpub.model.errors import UseError
from vizpub.model.tables import TABLES
from vizpub.questions.names import NamedRun

MOST_ROWS = 50_000
"""Of a table in a file."""
_OF_PEERS = ("peer", "src", "dst")


class EmbeddedRows:
    """The rows in the intervals of a run, of the layers, messages and topic; null = of all.

    Of a topic are the rows of it, and those of the peers that subscribe to it.
    """

    def __init__(
        self,
        run: NamedRun,
        layers: tuple[str, ...] | None = None,
        topic: int | None = None,
        subscribers: Integers | None = None,
        messages: Integers | None = None,
    ) -> None:
        self._run, self._layers, self._topic = run, layers, topic
        self._subscribers, self._messages = subscribers, messages

    def questions(self) -> Iterator[tuple[str, Callable[[], Answer]]]:
        """The list of the tables, and each of them."""
        yield "tables", self._describe
        for table in TABLES:
            if self._run.stored.has(table.name):
                definition = self._run.stored.definition(table.name)
                yield f"table {table.name}", partial(self._pack, definition)

    def _describe(self) -> Answer:
        tables = describe_tables(self._run)
        for table in tables:
            table["rows"] = self._count_rows(self._run.stored.definition(table["name"]))
        return answers.json_answer(tables)

    def _count_rows(self, table: Table) -> int:
        dataset = self._run.stored.dataset(table.name)
        return int(dataset.count_rows(filter=self._condition(table)))

    def _pack(self, table: Table) -> Answer:
        """Pack an array for each column: numbers, in which NaN is null and infinity an open end; or
        places in `texts`, in which -1 is null. `flags` are the columns that are true or false.

        Raises: UseError for a table with more than MOST_ROWS rows.
        """
        count = self._count_rows(table)
        if count > MOST_ROWS:
            raise UseError(
                f"{table.name} has {count:,} rows, and an exported file has tables of at most "
                f"{MOST_ROWS:,}: see vizpub explore or vizpub export csv"
            )
        rows = self._run.stored.read(table.name, where=self._condition(table))
        texts: dict[str, list[str]] = {}
        arrays: dict[str, npt.NDArray[Any]] = {}
        for column in table:
            values = rows[column.name]
            if column.type == "string":
                texts[column.name] = sorted(set(values.to_pylist()) - {None})
                places = pc.index_in(values, pa.array(texts[column.name], pa.string()))
                values = pc.fill_null(places, -1)
            floats = values.cast(pa.float64(), safe=False)  # an open end is no exact one
            arrays[column.name] = _to_smallest(pc.fill_null(floats, float("nan")).to_numpy())
        arrays |= {name: self._delays(rows) for name in computed_columns(table)}
        flags = [column.name for column in table if column.type == "bool"]
        return answers.ARRAYS, pack({"texts": texts, "flags": flags}, arrays)

    def _delays(self, receptions: pa.Table) -> Floats:
        """`delay_us` of each reception, as `vizpub sql` computes it; NaN = unknown."""
        published = self._run.stored.read("publications", ["message", "time_us"])
        place = np.searchsorted(published["message"].to_numpy(), receptions["message"].to_numpy())
        delays: Floats = numbers(receptions["time_us"]) - numbers(published["time_us"])[place]
        return delays

    def _condition(self, table: Table) -> pc.Expression:
        clock, names, where = self._run.clock, table.names, pc.scalar(True)
        first, last = clock.first * clock.ticks_per_interval, clock.sampling_tick(clock.last)
        if "interval" in names:
            where &= (pc.field("interval") >= clock.first) & (pc.field("interval") <= clock.last)
        elif "valid_from" in names:
            where &= (pc.field("valid_from") <= last) & (pc.field("valid_to") > first)
        if self._layers is not None and "layer" in names:
            where &= pc.field("layer").isin(pa.array(self._layers, pa.string()))
        if self._messages is not None and "message" in names:
            where &= pc.field("message").isin(pa.array(self._messages, pa.int64()))
        if self._topic is not None and "topic" in names and "layer" not in names:
            where &= pc.field("topic") == self._topic
        if self._subscribers is not None:
            for name in filter(_OF_PEERS.__contains__, names):
                where &= pc.field(name).isin(pa.array(self._subscribers, pa.int32()))
        return where


def _to_smallest(values: Floats) -> npt.NDArray[Any]:
    """Store numbers in the smallest type that holds them all exactly; an open end as infinity."""
    values = np.where(values == float(OPEN), np.inf, values)
    is_whole = values.size > 0 and bool((np.floor(values) == values).all())
    low, high = (values.min(), values.max()) if is_whole else (0.0, np.inf)
    for dtype in (np.uint8, np.uint16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return values
