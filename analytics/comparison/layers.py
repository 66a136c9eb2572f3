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
        """As Run.metrics; each interval of the window is measured now, in this process.

        Raises: as Run.metrics, and UseError for messages, which no layer changes.
        """
        kept = super().metrics(name, columns, where)
        if (table := _MEASURED.get(f"metrics/{name}")) is None:
            raise UseError(f"the metrics of {name} {WITHOUT_LAYERS}")
        rows = kept.to_arrow()
        if not rows.num_rows:
            return kept
        bounds = pc.min_max(rows["interval"]).as_py()
        found = self._measured(range(bounds["min"], bounds["max"] + 1), rows.column_names)
        beside = found[table.name].append_column(
            "measured", pa.array([True] * len(found[table.name]))
        )
        joined = rows.append_column("place", pa.array(range(len(rows)))).join(
            beside, list(table.key), join_type="left outer", right_suffix=" of layers"
        )
        joined = joined.sort_by("place")
        is_there = pc.fill_null(joined["measured"], False)
        for column in rows.column_names:
            if f"{column} of layers" in joined.column_names:
                values = pc.if_else(is_there, joined[f"{column} of layers"], joined[column])
                place = rows.column_names.index(column)
                rows = rows.set_column(place, rows.schema.field(column), values)
        return Frame(f"{kept.title}, {' and '.join(self.layers)}", rows)

    def _measured(self, window: range, columns: Sequence[str]) -> Mapping[str, pa.Table]:
        from vizpub.analytics.blocks import Links, Presence, Subscriptions, measure_block
        from vizpub.analytics.structure import cache_kernels, structure_rows

        cache_kernels()
        measures = self._measures(columns)
        presence, links = self._sampled("presence", window), self._sampled("links", window)
        taken = self._sampled("subscriptions", window)
        span = ("start", "stop")
        measured = measure_block(
            Links(*_arrays(links, "src", "dst", *span)),
            Presence(*_arrays(presence, "peer", *span)),
            Subscriptions(*_arrays(taken, "peer", "topic", *span)),
            window.start,
            window.stop - 1,
            measures,
        )
        rows = structure_rows(measured)
        overlay = _listed(rows["overlay"])
        clipped = self._dangling(window, overlay["interval"].to_pylist())
        return {
            METRICS_PEERS.name: rows.drop_columns(["overlay", "topics"]),
            METRICS_TOPICS.name: _listed(rows["topics"]),
            METRICS_OVERLAY.name: overlay.append_column("dangling_links", clipped),
        }

    def _measures(self, columns: Sequence[str]) -> Measures:
        """What the columns need, as far and by the samples that the run's own metrics had."""
        from dataclasses import fields, replace

        from vizpub.analytics.options import Measures

        options = self.stored.manifest.options
        told = {
            f.name: options[f.name] for f in fields(Measures) if options.get(f.name) is not None
        }
        needed = any("betweenness" in column for column in columns)
        return replace(Measures(**told), betweenness=needed)

    def _sampled(self, name: str, window: range) -> pa.Table:
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

    def _dangling(self, window: range, intervals: Sequence[int]) -> pa.Array:
        """The links of the layers to or from absent peers, in each of the intervals."""
        pairs: dict[int, set[tuple[int, int]]] = defaultdict(set)
        if not self.stored.has("dangling_links"):
            return pa.nulls(len(intervals), pa.int32())
        for row in self._sampled("dangling_links", window).to_pylist():
            for interval in range(row["start"], row["stop"]):
                pairs[interval].add((row["src"], row["dst"]))
        return pa.array([len(pairs[interval]) for interval in intervals], pa.int32())


def _arrays(rows: pa.Table, *columns: str) -> list[Integers]:
    return [rows[column].to_numpy() for column in columns]


def _listed(column: pa.ChunkedArray) -> pa.Table:
    """The structs in lists as rows."""
    return pa.Table.from_struct_array(pc.list_flatten(column))
