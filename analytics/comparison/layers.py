"""A run whose graph metrics are those of some layers, measured beside what it stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.model.errors import UseError
from vizpub.model.metrics import METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from vizpub.questions.frames import Frame
from vizpub.questions.run import Run, Where

if TYPE_CHECKING:
    from vizpub.analytics.options import Measures
    from vizpub.model.arrays import Integers

WITHOUT_LAYERS = "do not depend on layers"

_MEASURED = {table.name: table for table in (METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS)}


@dataclass(frozen=True, repr=False)
class RunOfLayers(Run):
    """As Run; its metrics of the graph count only links of `layers`. All others are as stored."""

    layers: tuple[str, ...] = ()

    @staticmethod
    def of(run: Run, layers: Sequence[str]) -> RunOfLayers:
        """The run. Raises: UnknownName for a layer, UseError without links or presence."""
        run.facts.check_known("presence", "links")
        run.checked_layers(layers)
        return RunOfLayers(run.stored, tuple(layers))

    def metrics(
        self,
        name: str = "overlay",
        columns: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> Frame:
        """Return metrics as Run.metrics does, but measure the window's intervals in this process.

        Raises: as Run.metrics, and UseError for messages, which no layer changes.
        """
        stored = super().metrics(name, columns, where)
        if (table := _MEASURED.get(f"metrics/{name}")) is None:
            raise UseError(f"the metrics of {name} {WITHOUT_LAYERS}")
        rows = stored.to_arrow()
        if not rows.num_rows:
            return stored
        bounds = pc.min_max(rows["interval"]).as_py()
        measured = self._measure_layers(range(bounds["min"], bounds["max"] + 1), rows.column_names)
        table_rows = measured[table.name].append_column(
            "measured", pa.array([True] * len(measured[table.name]))
        )
        joined = rows.append_column("place", pa.array(range(len(rows)))).join(
            table_rows, list(table.key), join_type="left outer", right_suffix=" of layers"
        )
        joined = joined.sort_by("place")
        is_measured = pc.fill_null(joined["measured"], False)
        for column in rows.column_names:
            if f"{column} of layers" in joined.column_names:
                values = pc.if_else(is_measured, joined[f"{column} of layers"], joined[column])
                place = rows.column_names.index(column)
                rows = rows.set_column(place, rows.schema.field(column), values)
        return Frame(f"{stored.title}, {' and '.join(self.layers)}", rows)

    def _measure_layers(self, window: range, columns: Sequence[str]) -> Mapping[str, pa.Table]:
        from vizpub.analytics.blocks import (
            LinkPeriods,
            PresencePeriods,
            SubscriptionPeriods,
            measure_block,
        )
        from vizpub.analytics.structure import cache_kernels, structure_rows

        cache_kernels()
        measures = self._needed_measures(columns)
        presence, links = (
            self._read_sampled("presence", window),
            self._read_sampled("links", window),
        )
        subscriptions = self._read_sampled("subscriptions", window)
        span = ("start", "stop")
        measured = measure_block(
            LinkPeriods(*_arrays(links, "src", "dst", *span)),
            PresencePeriods(*_arrays(presence, "peer", *span)),
            SubscriptionPeriods(*_arrays(subscriptions, "peer", "topic", *span)),
            window.start,
            window.stop - 1,
            measures,
        )
        rows = structure_rows(measured)
        overlay = _flatten_structs(rows["overlay"])
        clipped = self._count_dangling(window, overlay["interval"].to_pylist())
        return {
            METRICS_PEERS.name: rows.drop_columns(["overlay", "topics"]),
            METRICS_TOPICS.name: _flatten_structs(rows["topics"]),
            METRICS_OVERLAY.name: overlay.append_column("dangling_links", clipped),
        }

    def _needed_measures(self, columns: Sequence[str]) -> Measures:
        """Measures that the columns need, with the options that the run was measured by."""
        from dataclasses import fields, replace

        from vizpub.analytics.options import Measures

        options = self.stored.manifest.options
        stored_options = {
            f.name: options[f.name] for f in fields(Measures) if options.get(f.name) is not None
        }
        needs_betweenness = any("betweenness" in column for column in columns)
        return replace(Measures(**stored_options), betweenness=needs_betweenness)

    def _read_sampled(self, name: str, window: range) -> pa.Table:
        """Rows of validity periods, of the layers, with the intervals [start, stop) of each."""
        if not self.stored.has(name):
            return pa.table(
                {n: pa.array([], pa.int32()) for n in ("peer", "topic", "start", "stop")}
            )
        of_layers = pc.field("layer").isin(pa.array(self.layers, pa.string()))
        rows = self.stored.read(name, where=of_layers if "links" in name else None)
        spans = [
            self.clock.sampled(begin, end)
            for begin, end in zip(
                rows["valid_from"].to_pylist(), rows["valid_to"].to_pylist(), strict=True
            )
        ]
        rows = rows.append_column(
            "start", pa.array([max(s.start, window.start) for s in spans], pa.int32())
        )
        rows = rows.append_column(
            "stop", pa.array([min(s.stop, window.stop) for s in spans], pa.int32())
        )
        return rows.filter(pc.field("start") < pc.field("stop"))

    def _count_dangling(self, window: range, intervals: Sequence[int]) -> pa.Array:
        """The links of the layers to or from absent peers, in each of the intervals."""
        pairs: dict[int, set[tuple[int, int]]] = defaultdict(set)
        if not self.stored.has("dangling_links"):
            return pa.nulls(len(intervals), pa.int32())
        for row in self._read_sampled("dangling_links", window).to_pylist():
            for interval in range(row["start"], row["stop"]):
                pairs[interval].add((row["src"], row["dst"]))
        return pa.array([len(pairs[interval]) for interval in intervals], pa.int32())


def _arrays(rows: pa.Table, *columns: str) -> list[Integers]:
    return [rows[column].to_numpy() for column in columns]


def _flatten_structs(column: pa.ChunkedArray) -> pa.Table:
    """The structs in lists as rows."""
    return pa.Table.from_struct_array(pc.list_flatten(column))
