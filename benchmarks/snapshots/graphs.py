"""Temporal graphs: public ones, or generated ones of their shape, and a day of a gossip overlay.

A file has a line `SRC DST UNIXTIME` for each event, as SNAP publishes them. A snapshot is a day of
these graphs; of the gossip overlay, it is five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from benchmarks.overlay import history
from benchmarks.overlay import rows as link_rows
from benchmarks.sizes import Size

DAY = 86_400
STEP = 300
"""Seconds of an interval of the gossip overlay."""
GOSSIP = Size("gossip-day", peers=200, intervals=DAY // STEP, links=8, topics=20)
QUERIES = 20
KEYS = ("interval", "src", "dst")
_SPREAD_DAYS = 12
"""How far the events of a pair are apart, in the generated graphs."""
_ACTIVITY = 0.85
"""Exponent of Zipf's law for the activity of peers in them."""


@dataclass(frozen=True)
class Shape:
    """What is published of a graph: its size, and the file that has it."""

    peers: int
    events: int
    pairs: int
    """Different (src, dst)."""
    days: int
    file: str


SHAPES = {
    "CollegeMsg": Shape(1_899, 59_835, 20_296, 193, "CollegeMsg.txt.gz"),
    "email-Eu-core-temporal": Shape(986, 332_334, 24_929, 803, "email-Eu-core-temporal.txt.gz"),
    "sx-mathoverflow": Shape(24_818, 506_550, 239_978, 2_350, "sx-mathoverflow.txt.gz"),
    "sx-superuser": Shape(194_085, 1_443_339, 924_886, 2_773, "sx-superuser.txt.gz"),
}


def make_events(shape: Shape, seed: int = 1) -> pa.Table:
    """Generate events of this shape: src, dst, time, by time.

    The activity of peers follows Zipf's law. A peer joins on a day that is drawn at random, and the
    events of a pair lie around the day on which the second of the two joins; most pairs have few.
    """
    rng = np.random.default_rng(seed)
    pairs = _make_pairs(shape, rng)
    repeated = rng.choice(
        shape.pairs,
        shape.events - shape.pairs,
        p=_by_rank(shape.pairs)[rng.permutation(len(pairs))],
    )
    pair = np.concatenate([np.arange(shape.pairs), repeated])
    joined = rng.uniform(0, shape.days, shape.peers)
    middle = joined[pairs].max(axis=1)[pair]
    day = np.abs(middle + rng.laplace(0, _SPREAD_DAYS, pair.size)) % shape.days
    rows = {"src": pairs[pair, 0], "dst": pairs[pair, 1], "time": (day * DAY).astype(np.int64)}
    return pa.table(rows).sort_by([("time", "ascending"), ("src", "ascending")])


def _by_rank(count: int) -> np.ndarray:
    weights: np.ndarray = np.arange(1, count + 1) ** -_ACTIVITY
    weights /= weights.sum()
    return weights


def _make_pairs(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Different pairs, in which each peer occurs."""
    weights = _by_rank(shape.peers)
    found = np.empty((0, 2), np.int64)
    first = np.column_stack(
        [np.arange(shape.peers), rng.choice(shape.peers, shape.peers, p=weights)]
    )
    while len(found) < shape.pairs:
        more = rng.choice(shape.peers, (shape.pairs, 2), p=weights)
        every = np.concatenate([found, first, more])
        every = every[every[:, 0] != every[:, 1]]
        _, places = np.unique(every @ [shape.peers, 1], return_index=True)
        found, first = every[np.sort(places)][: shape.pairs], found[:0]
    return found


def write_graph(name: str, folder: Path, data: Path | None) -> None:
    """Write what all programs read: the events, the snapshots, and what is asked.

    The events are those of the published file if `data` has it, else generated ones.
    """
    if name == GOSSIP.name:
        step, rows = STEP, pa.concat_tables(map(link_rows, history(GOSSIP)))
        times = pc.multiply(pc.cast(rows["interval"], pa.int64()), STEP)
        events = pa.table({"src": rows["src"], "dst": rows["dst"], "time": times})
    else:
        step, published = DAY, data / SHAPES[name].file if data else None
        events = read_events(published) if published else make_events(SHAPES[name])
        rows = snapshots_of(events)
    options = pc_csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    pc_csv.write_csv(events, folder / "events.txt", options)
    (folder / "step").write_text(f"{step}s")
    rows = rows.sort_by([(key, "ascending") for key in KEYS])
    rows = rows.cast(pa.schema([(key, pa.int64()) for key in KEYS]))
    pq.write_table(rows, folder / "snapshots.parquet")
    pq.write_table(presence_of(rows), folder / "presence.parquet")
    pq.write_table(_draw_queries(rows), folder / "queries.parquet")


def read_events(path: Path) -> pa.Table:
    """Read a published file: src, dst, time from the first event's midnight on; no self-loops."""
    rows = pc_csv.read_csv(
        path,
        pc_csv.ReadOptions(column_names=["src", "dst", "time"]),
        pc_csv.ParseOptions(delimiter=" "),
    )
    begin = pc.min(rows["time"]).as_py() // DAY * DAY
    rows = rows.set_column(2, "time", pc.subtract(rows["time"], begin))
    return rows.filter(pc.not_equal(rows["src"], rows["dst"])).sort_by("time")


def snapshots_of(events: pa.Table) -> pa.Table:
    """interval, src, dst: each pair once in each day with an event."""
    day = pc.divide(events["time"], DAY)
    rows = pa.table({"interval": day, **{key: events[key] for key in ("src", "dst")}})
    return rows.group_by([*KEYS]).aggregate([])


def presence_of(rows: pa.Table) -> pa.Table:
    """peer, valid_from, valid_to: from the first day with an event of the peer to the last."""
    ends = pa.concat_tables(
        rows.select(["interval", key]).rename_columns(["interval", "peer"])
        for key in ("src", "dst")
    )
    spans = ends.group_by("peer").aggregate([("interval", "min"), ("interval", "max")])
    stop = pc.add(spans["interval_max"], 1)
    columns = {"peer": spans["peer"], "valid_from": spans["interval_min"], "valid_to": stop}
    return pa.table(columns).sort_by("peer")


def _draw_queries(rows: pa.Table) -> pa.Table:
    """interval, src, dst: pairs of peers with links on that day, both drawn at random."""
    rng = np.random.default_rng(2)
    chosen = rows.take(rng.choice(len(rows), QUERIES))
    others = [
        rng.choice(rows.filter(pc.field("interval") == day)["dst"].to_numpy())
        for day in chosen["interval"].to_pylist()
    ]
    return pa.table({"interval": chosen["interval"], "src": chosen["src"], "dst": pa.array(others)})
