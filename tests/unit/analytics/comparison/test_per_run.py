"""What runs come to, against plain loops over the rows they were made of."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.words import naming, tells, unknown
from vizpub.analytics.comparison.metrics import metric_names
from vizpub.analytics.comparison.per_run import (
    NO_COMMON_INTERVAL,
    NO_INTERVAL_OF_WINDOW,
    ComparisonRequest,
    common_clock,
    measure_runs,
)
from vizpub.model.clock import OPEN, Clock
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.tables import table
from vizpub.questions.run import Run
from vizpub.runstore.manifest import Manifest, Since
from vizpub.runstore.store import StoredRun
from vizpub.runstore.writer import writing

Row = dict[str, Any]
INTERVALS, PEERS, MESSAGES = 6, 5, 9
SECONDS = Clock(1, 1_000_000, 0, INTERVALS - 1)


@dataclass(frozen=True)
class Made:
    """A run drawn at random, its rows by table."""

    name: str
    seed: int
    protocol: str = "toy"
    clock: Clock = SECONDS
    parameters: dict[str, Any] = field(default_factory=dict)
    layers: list[str] | None = None
    without: tuple[str, ...] = ()

    @property
    def rows(self) -> dict[str, list[Row]]:
        draw = Random(self.seed)
        made = {
            "presence": [
                {"peer": p, "valid_from": draw.randrange(4), "valid_to": draw.choice([5, OPEN])}
                for p in range(PEERS)
            ],
            "links": [_link(draw) for _ in range(12)],
            "publications": [_publication(m, draw) for m in range(MESSAGES)],
            "receptions": [_reception(draw) for _ in range(40)],
            "metrics/overlay": [_overlay(i, draw) for i in range(INTERVALS)],
            "metrics/peers": [
                {"peer": p, "interval": i, "present": draw.random() < 0.8, "degree": p + i}
                for i in range(INTERVALS)
                for p in range(PEERS)
            ],
            "metrics/topics": [
                {"topic": t, "interval": i, "subscribers": draw.randrange(9)}
                for i in range(INTERVALS)
                for t in range(draw.randrange(3))
            ],
            "metrics/messages": [_message(m, draw) for m in range(MESSAGES)],
            "gauges": [row for i in range(INTERVALS) for row in _gauges(i, draw)],
            "traffic": [
                {"peer": p, "interval": i} | _traffic(draw)
                for i in range(INTERVALS)
                for p in range(PEERS)
            ],
            "roles": [_role(draw) for _ in range(12)],
        }
        return {name: rows for name, rows in made.items() if name not in self.without}

    def store(self, workspace: Path) -> Run:
        manifest = Manifest(
            self.name,
            "reports",
            (),
            {"layers": self.layers},
            clock=self.clock,
            protocol=self.protocol,
            parameters=self.parameters,
            seed=self.seed,
        )
        with writing(workspace, self.name) as writer:
            writer.begin(manifest)
            entries = {}
            for name, rows in self.rows.items():
                directory = writer.fresh_directory(name)
                directory.mkdir(parents=True)
                schema = table(name).arrow
                blank = dict.fromkeys(schema.names)
                written = pa.Table.from_pylist([blank | row for row in rows], schema)
                pq.write_table(written, directory / "part-0.parquet")
                entries[name] = writer.entry(directory)
            writer.commit(manifest.with_stage("all", entries, state="complete"))
        return Run.open(workspace, self.name)


def _link(draw: Random) -> Row:
    valid_from = draw.randrange(6)
    return {
        "src": draw.randrange(PEERS),
        "dst": draw.randrange(PEERS),
        "layer": draw.choice(["rings", "cyclon"]),
        "valid_from": valid_from,
        "valid_to": draw.choice([valid_from + 1, OPEN]),
    }


def _publication(message: int, draw: Random) -> Row:
    interval = draw.randrange(INTERVALS)
    known = {"name": f"m{message}", "tick": interval, "publication_known": True}
    return {"message": message, "interval": interval, "time_us": 1000 * interval + message, **known}


def _reception(draw: Random) -> Row:
    arrival = {"message": draw.randrange(MESSAGES), "peer": 0, "interval": 0, "tick": 0}
    reached = {"first": draw.random() < 0.7, "hop": draw.choice([None, 1, 2, 3])}
    return arrival | reached | {"time_us": 6000 + 100 * arrival["message"] + 7 * reached["first"]}


def _gauges(interval: int, draw: Random) -> Iterator[Row]:
    """`late` is reported from interval 3 on, by fewer peers."""
    for peer in range(PEERS):
        if draw.random() < 0.8:
            for name in ("hops", "lookups", *(["late"] if interval > 2 and peer < 2 else [])):
                value = round(10 * draw.random() - 2, 3)
                yield {"peer": peer, "interval": interval, "gauge": name, "value": value}


def _traffic(draw: Random) -> Row:
    """Bytes are not reported."""
    ways = [f"{kind}_messages_{way}" for kind in KINDS for way in ("sent", "received")]
    return {way: draw.choice([None, *range(20)]) for way in ways}


KINDS = ("control", "publication")


def _role(draw: Random) -> Row:
    begin = draw.randrange(INTERVALS)
    return {
        "peer": draw.randrange(PEERS),
        "role": draw.choice(["rendezvous", "rendezvous", "seed"]),
        "topic": draw.randrange(4),
        "valid_from": begin,
        "valid_to": draw.choice([begin + 2, OPEN]),
    }


def _overlay(interval: int, draw: Random) -> Row:
    diameter = draw.choice([None, 2, 3, 4])
    return {"interval": interval, "diameter": diameter, "hit_ratio": draw.random()}


def _message(message: int, draw: Random) -> Row:
    eligible = draw.randrange(5)
    delivered = draw.randint(0, eligible)
    return {
        "message": message,
        "eligible": eligible,
        "delivered": delivered,
        "hit_ratio": delivered / eligible if eligible else None,
        "receptions": 7,
        "duplicates": draw.randrange(7),
        "relay_receptions": draw.choice([None, 1, 2]),
        "rejections": int(draw.random() < 0.2),
        "hops_mean": draw.random(),
    }


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def nested(rows: Iterable[Row], column: str) -> float | None:
    """The mean over intervals of the means in them."""
    by_interval: dict[int, list[float]] = {}
    for row in rows:
        by_interval.setdefault(row["interval"], []).append(row[column])
    return mean(mean(values) for values in by_interval.values())


def quotient(rows: list[Row], above: str, below: str) -> float | None:
    total = sum(row[below] for row in rows)
    return sum(row[above] for row in rows) / total if total else None


def percentile(values: list[float], share: float) -> float:
    """By DuckDB."""
    sql = "SELECT quantile_disc(value, ?) FROM (SELECT unnest(?) AS value)"
    (found,) = duckdb.execute(sql, [share, values]).fetchall()[0]
    return float(found)


def percentile_of_intervals(rows: list[Row], share: float) -> float | None:
    values = defaultdict(list)
    for row in rows:
        values[row["interval"]].append(row["value"])
    return mean([percentile(of_one, share) for of_one in values.values()])


def of_gauges(rows: list[Row], first: int, last: int) -> dict[str, float | None]:
    gauges = {
        name: [row for row in rows if row["gauge"] == name and first <= row["interval"] <= last]
        for name in ("hops", "lookups", "late")
    }
    return {
        "gauges/hops": nested(gauges["hops"], "value"),
        "gauges/late": nested(gauges["late"], "value"),
        "gauges/hops/total": sum(row["value"] for row in gauges["hops"]),
        "gauges/lookups/max": max(row["value"] for row in gauges["lookups"]),
        "gauges/hops/per/lookups": sum(row["value"] for row in gauges["hops"])
        / sum(row["value"] for row in gauges["lookups"]),
        "gauges/nonsuch": None,
        "gauges/hops/per/nonsuch": None,
        "gauges/lookups/p99": percentile_of_intervals(gauges["lookups"], 0.99),
    }


def expected(made: Made, first: int, last: int) -> dict[str, float | None]:
    rows = made.rows
    inside = {
        name: [row for row in rows[name] if first <= row["interval"] <= last]
        for name in ("metrics/overlay", "metrics/peers", "metrics/topics", "publications")
    }
    published = {row["message"] for row in inside["publications"]}
    messages = [row for row in rows["metrics/messages"] if row["message"] in published]
    counted = [row for row in messages if not row["rejections"]]
    told = [row for row in messages if row["relay_receptions"] is not None]
    hops = [
        row["hop"]
        for row in rows["receptions"]
        if row["message"] in published and row["first"] and row["hop"] is not None
    ]
    alive = {
        name: [row for row in rows[name] if row["valid_from"] <= last and row["valid_to"] > first]
        for name in ("presence", "links")
    }
    peers = len({row["peer"] for row in alive["presence"]})
    links = len(
        {
            (row["src"], row["dst"])
            for row in alive["links"]
            if row["src"] != row["dst"] and (made.layers is None or row["layer"] in made.layers)
        }
    )

    loads = loads_of(rows["traffic"], first, last)
    times = [
        row["time_us"] for row in rows["receptions"] if row["message"] in published and row["first"]
    ]
    return {
        **of_gauges(rows["gauges"], first, last),
        "convergence_us": max(times) - min(row["time_us"] for row in inside["publications"]),
        "busiest_tenth_messages": max(loads.values()) / (last + 1 - first),
        "busiest_tenth_share": max(loads.values()) / loads.total(),
        "busiest_tenth_bytes_share": None,
        **rooted(rows, last),
        "diameter": mean(row["diameter"] for row in inside["metrics/overlay"]),
        "overlay/hit_ratio": mean(row["hit_ratio"] for row in inside["metrics/overlay"]),
        "degree": nested((row for row in inside["metrics/peers"] if row["present"]), "degree"),
        "subscribers": nested(inside["metrics/topics"], "subscribers"),
        "messages/hit_ratio": mean(row["hit_ratio"] for row in counted),
        "messages/hops_mean": mean(row["hops_mean"] for row in messages),
        "distinct_peers": peers,
        "distinct_links": links,
        "distinct_links_per_peer": links / peers,
        "distinct_density": links / (peers * (peers - 1)),
        "publications": len(messages),
        "hit_ratio": quotient(counted, "delivered", "eligible"),
        "hit_ratio_mean": mean(row["hit_ratio"] for row in counted),
        "duplicates_per_delivery": quotient(counted, "duplicates", "delivered"),
        "relay_share": quotient(told, "relay_receptions", "receptions"),
        "hops_mean": mean(hops),
        "hops_max": max(hops, default=None),
    }


def loads_of(traffic: list[Row], first: int, last: int) -> Counter[int]:
    """By peer. Of five peers a tenth is one."""
    loads = Counter[int]()
    for row in traffic:
        if first <= row["interval"] <= last:
            loads[row["peer"]] += sum(row[name] or 0 for name in row if "messages" in name)
    return loads


def rooted(rows: dict[str, list[Row]], last: int) -> dict[str, float]:
    def now(row: Row) -> bool:
        return bool(row["valid_from"] <= last < row["valid_to"])

    topics: dict[int, set[int]] = {r["peer"]: set() for r in rows["presence"] if now(r)}
    for row in rows["roles"]:
        if now(row) and row["role"] == "rendezvous" and row["peer"] in topics:
            topics[row["peer"]].add(row["topic"])
    counts = [len(of) for of in topics.values()]
    names = ("rooted_topics_min", "rooted_topics_mean", "rooted_topics_max")
    return dict(zip(names, (min(counts), fmean(counts), max(counts)), strict=True))


@pytest.mark.parametrize("window", [(None, None), (1, 4)])
@pytest.mark.parametrize("seed", range(5))
def test_metric_values_equal_plain_loops_over_the_rows(
    tmp_path: Path, seed: int, window: tuple[int | None, int | None]
) -> None:
    print(f"seed {seed}")
    made = Made("a", seed, layers=["rings"] if seed % 2 else None)
    found = made.store(tmp_path)
    first, last = (window[0] or 0, window[1] or INTERVALS - 1)
    truth = expected(made, first, last)
    answer = measure_runs([found], ComparisonRequest(tuple(truth), window=window))
    assert (answer.first, answer.last) == (first, last)
    assert [of.name for of in answer.metrics] == list(truth)
    for name, value in answer.runs[0].values.items():
        assert value == (truth[name] if truth[name] is None else pytest.approx(truth[name])), name


def test_comparison_of_all_metrics_reads_no_column_more_than_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Made("a", 3).store(tmp_path)
    found: Counter[tuple[str, str]] = Counter()
    scan = StoredRun.scan

    def counted(
        stored: StoredRun,
        name: str,
        columns: Sequence[str] | None = None,
        where: Any = None,
        since: Since | None = None,
    ) -> Iterator[pa.RecordBatch]:
        asked = columns or table(name).names
        below = [column for column in table(name).names if re.search(rf"\b{column}\b", str(where))]
        found.update((name, column) for column in {*asked, *below})
        return scan(stored, name, columns, where, since)

    monkeypatch.setattr(StoredRun, "scan", counted)
    measure_runs([run], ComparisonRequest(tuple(metric_names())))
    assert {name for name, _ in found} > {"publications", "receptions", "metrics/messages"}
    assert max(found.values()) == 2


def test_series_has_a_value_for_every_window_interval(tmp_path: Path) -> None:
    made = Made("a", 3)
    question = ComparisonRequest(
        ("diameter", "degree", "messages/hops_mean"), window=(1, 4), per_interval=True
    )
    (found,) = measure_runs([made.store(tmp_path)], question).runs
    overlay = {row["interval"]: row["diameter"] for row in made.rows["metrics/overlay"]}
    assert found.series["diameter"] == [overlay[i] for i in range(1, 5)]
    hops = {row["message"]: row["hops_mean"] for row in made.rows["metrics/messages"]}
    for place, interval in enumerate(range(1, 5)):
        here = [r for r in made.rows["metrics/peers"] if r["interval"] == interval]
        assert found.series["degree"][place] == mean(r["degree"] for r in here if r["present"])
        published = [r for r in made.rows["publications"] if r["interval"] == interval]
        truth = mean(hops[row["message"]] for row in published)
        assert found.series["messages/hops_mean"][place] == (truth and pytest.approx(truth))
    assert found.values == {}


def test_gauges_of_an_interval_are_over_the_peers_that_report_them(tmp_path: Path) -> None:
    made = Made("a", 3)
    names = ("gauges/late", "gauges/hops/total", "gauges/hops/max", "gauges/hops/per/late")
    names = (*names, "gauges/hops/p60")
    question = ComparisonRequest(names, window=(1, 4), per_interval=True)
    answer = measure_runs([made.store(tmp_path)], question)
    assert [of.over for of in answer.metrics] == [
        "mean of peers",
        "sum of peers",
        "largest of peers",
        "pooled over peers",
        "percentile of peers",
    ]
    for place, interval in enumerate(range(1, 5)):
        late, hops = (
            [
                row["value"]
                for row in made.rows["gauges"]
                if (row["interval"], row["gauge"]) == (interval, name)
            ]
            for name in ("late", "hops")
        )
        truth = (mean(late), sum(hops), max(hops), sum(hops) / sum(late) if late else None)
        truth = (*truth, percentile(hops, 0.6))
        for name, value in zip(names, truth, strict=True):
            found = answer.runs[0].series[name][place]
            assert found == (value if value is None else pytest.approx(value)), name
    assert answer.runs[0].series["gauges/late"][:2] == [None, None]


def test_roots_are_unknown_where_no_peer_ever_is_one(tmp_path: Path) -> None:
    made = Made("a", 3, without=("roles",)).store(tmp_path)
    (found,) = measure_runs([made], ComparisonRequest(("rooted_topics_max",))).runs
    assert found.values == {"rooted_topics_max": None}


def test_metric_unknown_to_one_run_is_null_and_noted(tmp_path: Path) -> None:
    blind = ("metrics/messages", "publications", "receptions", "presence", "links")
    runs = [Made("a", 1).store(tmp_path), Made("b", 2, without=blind).store(tmp_path)]
    names = ("hit_ratio", "hops_mean", "messages/hops_mean", "distinct_links", "diameter")
    answer = measure_runs(runs, ComparisonRequest(names))
    b = answer.runs[1]
    assert b.values["diameter"] is not None
    assert [b.values[name] for name in names[:-1]] == [None] * 4
    assert any(f"b: {', '.join(names[:-1])}" in note for note in answer.notes)


def test_metric_unknown_to_every_run_is_omitted_unless_named(tmp_path: Path) -> None:
    run = Made("a", 1, without=("metrics/messages", "receptions")).store(tmp_path)
    usual = measure_runs([run])
    assert "diameter" in {of.name for of in usual.metrics}
    assert "hit_ratio" not in {of.name for of in usual.metrics}
    assert any(note.startswith("unknown in every run: ") for note in usual.notes)
    (asked,) = measure_runs([run], ComparisonRequest(("hit_ratio",))).metrics
    assert asked.name == "hit_ratio"


@pytest.mark.parametrize("window", [(None, None), (2, None), (3, 4)])
def test_values_of_a_run_do_not_depend_on_the_other_runs(
    tmp_path: Path, window: tuple[int | None, int | None]
) -> None:
    short = Made("b", 2, clock=Clock(1, 1_000_000, 2, 4))
    runs = [Made("a", 1).store(tmp_path), short.store(tmp_path)]
    request = ComparisonRequest(tuple(metric_names()), window=window)
    together = measure_runs(runs, request)
    for run, measured in zip(runs, together.runs, strict=True):
        (alone,) = measure_runs([run], request).runs
        assert measured.values == alone.values


def test_runs_of_different_lengths_are_measured_over_common_intervals_on_request(
    tmp_path: Path,
) -> None:
    short = Made("b", 2, clock=Clock(1, 1_000_000, 2, 4))
    runs = [Made("a", 1).store(tmp_path), short.store(tmp_path)]
    tells(measure_runs(runs).notes[0], "(a: 0 to 5; b: 2 to 4)", "--common")
    for request in (ComparisonRequest(common=True), ComparisonRequest(per_interval=True)):
        answer = measure_runs(runs, request)
        assert (answer.first, answer.last) == (2, 4)
        assert "(a: 0 to 5; b: 2 to 4)" in answer.notes[0]
        assert "the common ones, 2 to 4" in answer.notes[0]
    answer = measure_runs(runs, ComparisonRequest(common=True))
    alone = measure_runs(runs[:1], ComparisonRequest(window=(2, 4)))
    assert alone.runs[0].values == answer.runs[0].values


@pytest.mark.parametrize(
    ("request_", "scope", "over"),
    [
        (ComparisonRequest(), "whole runs, intervals the first to the last", "whole run"),
        (ComparisonRequest(window=(3, None)), "intervals 3 to the last", "intervals 3 to the last"),
        (ComparisonRequest(common=True), "intervals 2 to 4", "intervals 2 to 4"),
        (ComparisonRequest(window=(3, 4)), "intervals 3 to 4", "intervals 3 to 4"),
    ],
)
def test_metrics_say_over_which_intervals_they_were_taken(
    tmp_path: Path, request_: ComparisonRequest, scope: str, over: str
) -> None:
    short = Made("b", 2, clock=Clock(1, 1_000_000, 2, 4))
    runs = [Made("a", 1).store(tmp_path), short.store(tmp_path)]
    answer = measure_runs(runs, replace(request_, metrics=("distinct_peers", "publications")))
    assert answer.scope == scope
    assert answer.metrics[0].over == over
    is_whole = over == "whole run"
    assert answer.metrics[1].over == f"sum over {'the run' if is_whole else over}"


def test_runs_without_an_interval_of_the_window_are_refused(tmp_path: Path) -> None:
    late = Made("b", 2, clock=Clock(1, None, 7, 9))
    runs = [Made("a", 1).store(tmp_path), late.store(tmp_path)]
    assert len(measure_runs(runs, ComparisonRequest(("distinct_peers",))).runs) == 2
    with pytest.raises(UseError, match=NO_COMMON_INTERVAL):
        measure_runs(runs, ComparisonRequest(common=True))
    with pytest.raises(UseError, match=NO_INTERVAL_OF_WINDOW):
        measure_runs(runs, ComparisonRequest(window=(7, None)))


def test_common_clock_of_different_interval_lengths_refuses_times(tmp_path: Path) -> None:
    slow = Made("b", 2, clock=Clock(1, 10_000_000, 0, INTERVALS - 1)).store(tmp_path)
    runs = [Made("a", 1).store(tmp_path), slow]
    clock = common_clock(runs)
    assert clock.interval_us is None
    with pytest.raises(UseError, match=naming("'2s'", f"({clock.first} to {clock.last})")):
        clock.parse_at("2s")
    note = measure_runs(runs).notes[0]
    tells(note, "(a: 1 s; b: 10 s)")


def test_common_clock_of_different_ticks_parses_times(tmp_path: Path) -> None:
    """A trace of events and a simulation, both in intervals of a second."""
    events = Made("b", 2, clock=Clock(1_000_000, 1, 0, 3)).store(tmp_path)
    clock = common_clock([Made("a", 1).store(tmp_path), events])
    assert clock.interval_of(clock.parse_at("2.5s")) == 2


def test_notes_name_different_layers_and_rejections(tmp_path: Path) -> None:
    runs = [Made("a", 1, layers=["rings"]).store(tmp_path), Made("b", 2).store(tmp_path)]
    notes = measure_runs(runs, ComparisonRequest(("hit_ratio",))).notes
    assert "the metrics count links of different layers (a: rings; b: all)" in notes
    refused = {
        name: sum(row["rejections"] for row in Made(name, seed).rows["metrics/messages"])
        for name, seed in (("a", 1), ("b", 2))
    }
    told = ", ".join(f"{name}: {count}" for name, count in refused.items() if count)
    assert any(told and f"({told} in total)" in note for note in notes)
    assert not any(
        "refused" in note for note in measure_runs(runs, ComparisonRequest(("diameter",))).notes
    )


def test_metric_named_twice_is_compared_once(tmp_path: Path) -> None:
    asked = ComparisonRequest(("diameter", "overlay/diameter"))
    assert len(measure_runs([Made("a", 1).store(tmp_path)], asked).metrics) == 1


def test_unknown_metric_or_parameter_is_refused_with_nearest_name(tmp_path: Path) -> None:
    run = Made("a", 1, parameters={"fanout": 2}).store(tmp_path)
    with pytest.raises(UnknownName, match=unknown("metric", "diametr", "diameter")):
        measure_runs([run], ComparisonRequest(("diametr",)))
    with pytest.raises(UnknownName, match=unknown("property of these runs", "fanot", "fanout")):
        measure_runs([run], ComparisonRequest(by=("fanot",)))
    assert measure_runs([run], ComparisonRequest(by=("fanout",))).runs[0].group == "fanout=2"


def test_run_tells_the_setting_it_is_compared_at(tmp_path: Path) -> None:
    runs = [
        Made(f"a{fanout}", fanout, parameters={"fanout": fanout}).store(tmp_path)
        for fanout in (2, 3)
    ]
    found = measure_runs(runs, ComparisonRequest(("diameter",), setting="fanout")).runs
    assert [(run.group, run.setting) for run in found] == [("toy", "2"), ("toy", "3")]
