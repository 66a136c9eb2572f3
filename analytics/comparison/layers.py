"""A run whose graph metrics are those of some layers, measured beside what it stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from vizpub.analytics.comparison.spans import read_spans
from vizpub.model.errors import UseError
from vizpub.model.metrics import METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS
from vizpub.questions.frames import Frame
from vizpub.questions.run import Run, Where

if TYPE_CHECKING:
    from vizpub.analytics.own import Spans
    from vizpub.model.arrays import Integers

WITHOUT_LAYERS = "do not depend on layers"

_MEASURED = {table.name: table for table in (METRICS_OVERLAY, METRICS_PEERS, METRICS_TOPICS)}


@dataclass(frozen=True, repr=False)
class RunOfLayers(Run):
    """A run whose metrics of the graph count only links of `layers`; all others are as stored."""

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
        *,
        by: str | None = None,
        receivers: bool = False,
    ) -> Frame:
        """Return metrics as Run.metrics does, but measure the window's intervals in this process.

        Raises: as Run.metrics, and UseError for messages and for columns that no layer changes.
        """
        if by is not None and name == "peers":
            return super().metrics(name, columns, where, by=by)  # of metrics measured below
        stored = super().metrics(name, columns, where, by=by, receivers=receivers)
        if (table := _MEASURED.get(f"metrics/{name}")) is None or by is not None:
            raise UseError(f"the metrics of {name} {WITHOUT_LAYERS}")
        changed = {"dangling_links", *(column.name for column in table if column.graph)}
        if columns and not changed & {*columns}:  # an error now, not after the work
            raise UseError(f"{' and '.join(columns)} {WITHOUT_LAYERS}")
        rows = stored.to_arrow()
        if not rows.num_rows:
            return stored
        bounds = pc.min_max(rows["interval"]).as_py()
        window = range(bounds["min"], bounds["max"] + 1)
        measured = self._measure_layers(window, rows.column_names)
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
        if "dangling_links" in rows.column_names:  # also where no peer is present to be measured
            place = rows.column_names.index("dangling_links")
            clipped = self._count_dangling(window, rows["interval"].to_pylist())
            rows = rows.set_column(place, rows.schema.field(place), clipped)
        return Frame(f"{stored.title}, {' and '.join(self.layers)}", rows)

    def control(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        by: str | None = None,
    ) -> Frame:
        """Raises: UseError, as no layer changes what control peers send."""
        raise UseError(f"control messages {WITHOUT_LAYERS}")

    def gauges(self, names: Sequence[str] | None = None, where: Where | None = None) -> Frame:
        """Raises: UseError, as no layer changes what peers report."""
        raise UseError(f"gauges {WITHOUT_LAYERS}")

    def delays(self, where: Where | None = None) -> Frame:
        """Raises: UseError, as no layer changes when a message arrives."""
        raise UseError(f"delays {WITHOUT_LAYERS}")

    def _measure_layers(self, window: range, columns: Sequence[str]) -> Mapping[str, pa.Table]:
        from vizpub.analytics.blocks import (
            LinkPeriods,
            PresencePeriods,
            SubscriptionPeriods,
            measure_block,
        )
        from vizpub.analytics.structure import cache_kernels, structure_rows

        cache_kernels()
        from dataclasses import fields, replace

        from vizpub.analytics.options import Measures

        options = self.stored.manifest.options
        stored_options = {
            f.name: options[f.name] for f in fields(Measures) if options.get(f.name) is not None
        }
        needs_betweenness = any("betweenness" in column for column in columns)
        measures = replace(Measures(**stored_options), betweenness=needs_betweenness)
        links = read_spans(self, "links", ["src", "dst"], window, self.layers)
        presence = read_spans(self, "presence", ["peer"], window)
        subscriptions = read_spans(self, "subscriptions", ["peer", "topic"], window)
        measured = measure_block(
            LinkPeriods(*_arrays(links)),
            PresencePeriods(*_arrays(presence)),
            SubscriptionPeriods(*_arrays(subscriptions)),
            window.start,
            window.stop - 1,
            measures,
        )
        rows = structure_rows(measured)
        return {
            METRICS_PEERS.name: rows.drop_columns(["overlay", "topics"]),
            METRICS_TOPICS.name: _flatten_structs(rows["topics"]),
            METRICS_OVERLAY.name: _flatten_structs(rows["overlay"]),
        }

    def _count_dangling(self, window: range, intervals: Sequence[int]) -> pa.Array:
        """The links of the layers to or from absent peers, in each of the intervals."""
        pairs: dict[int, set[tuple[int, int]]] = defaultdict(set)
        if not self.stored.has("dangling_links"):
            return pa.nulls(len(intervals), pa.int32())
        for src, dst, start, stop in zip(
            *_arrays(read_spans(self, "dangling_links", ["src", "dst"], window, self.layers)),
            strict=True,
        ):
            for interval in range(start, stop):
                pairs[interval].add((src, dst))
        return pa.array([len(pairs[interval]) for interval in intervals], pa.int32())


def _arrays(spans: Spans) -> list[Integers]:
    return [*(column.to_numpy() for column in spans.columns.columns), spans.start, spans.stop]


def _flatten_structs(column: pa.ChunkedArray) -> pa.Table:
    """The structs in lists as rows."""
    return pa.Table.from_struct_array(pc.list_flatten(column))
