"""What became of messages, against plain Python that looks at one message at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import isclose
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from tests.support.arrivals import PEERS, Row, naive_hops, random_arrivals
from vizpub.analytics.messages.message_fold import (
    ARRIVAL,
    PUBLICATION,
    REJECTION,
    ROWS,
    SILENCE,
    SUBSCRIPTION,
    MessageFold,
    join_capabilities,
)
from vizpub.analytics.messages.message_measures import exact_sums
from vizpub.analytics.own import Message, OwnFunction
from vizpub.model.clock import OPEN
from vizpub.model.metrics import METRICS_MESSAGES
from vizpub.model.own import OwnMetric
from vizpub.model.tables import COPY_FLAGS, RECEPTIONS

TOPICS, TICKS_PER_INTERVAL = 4, 100
LAST = 2_000
LARGEST = 2**63 - 1
NOT = {True: False, False: True, None: None}


@dataclass(frozen=True)
class World:
    """What is told of messages, as rows; receptions are as observed."""

    publications: list[Row]
    receptions: list[Row] | None
    rejections: list[int]
    subscriptions: list[Row] | None
    unreported: list[tuple[int, int]]
    duplicates_known: bool = True
    sampled_since: int | None = None


def random_subscriptions(rng: np.random.Generator) -> list[Row]:
    """Disjoint lives, one to three per peer and topic."""
    rows = []
    for peer in range(PEERS):
        for topic in range(TOPICS):
            cuts = sorted({int(x) for x in rng.integers(0, LAST, int(rng.choice([0, 2, 4])))})
            ends = [*cuts, OPEN] if len(cuts) % 2 else cuts
            for valid_from, valid_to in zip(ends[::2], ends[1::2], strict=True):
                rows.append(
                    {"peer": peer, "topic": topic, "valid_from": valid_from, "valid_to": valid_to}
                )
    return rows


def random_publication(rng: np.random.Generator, message: int, subscriptions: list[Row]) -> Row:
    """At any time, or when a subscription to its topic begins or ends."""
    known, topic = bool(rng.random() < 0.85), int(rng.integers(0, TOPICS))
    turns = [
        row[end]
        for row in subscriptions
        for end in ("valid_from", "valid_to")
        if row["topic"] == topic
    ]
    sharp = rng.random() < 0.3
    tick = int(rng.choice([t for t in turns if t < LAST]) if sharp else rng.integers(0, LAST))
    return {
        "message": message,
        "topic": None if rng.random() < 0.08 else topic,
        "publisher": int(rng.integers(0, PEERS)) if rng.random() < (0.5, 0.95)[known] else None,
        "interval": tick // TICKS_PER_INTERVAL,
        "time_us": tick if known and rng.random() < 0.9 else None,
        "tick": tick,
        "publication_known": known,
    }


def random_world(seed: int, messages: int) -> World:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    subscriptions = random_subscriptions(rng)
    publications = [random_publication(rng, m, subscriptions) for m in range(messages)]
    unreported = [
        (peer, interval)
        for peer in range(PEERS)
        for interval in range(LAST // TICKS_PER_INTERVAL)
        if rng.random() < 0.15
    ]
    receptions: list[Row] = []
    rejections = []
    for published in publications:
        timed, tells = rng.random() < 0.9, rng.random() < 0.5
        for row in random_arrivals(rng, published["message"], published["publisher"]):
            tick = max(0, published["tick"] + int(rng.integers(-20, 300)))
            row |= {
                "tick": tick,
                "interval": tick // TICKS_PER_INTERVAL,
                "time_us": tick if timed and rng.random() < 0.97 else None,
                "arrival": len(receptions),
                "subscribed": (True, False, None, None, None)[rng.integers(5)],
                **{flag.name: (True, False, None)[rng.integers(3)] for flag in COPY_FLAGS},
            }
            if not tells:
                row["first"] = None
            elif rng.random() < 0.1:
                row["first"] = (True, False, None)[rng.integers(3)]
            if rng.random() < 0.05:
                rejections.append(published["message"])
            else:
                receptions.append(row)
    receptions = [receptions[i] for i in rng.permutation(len(receptions))]
    return World(publications, receptions, rejections, subscriptions, unreported)


def naive_interest(
    subscriptions: list[Row] | None, peer: int, topic: int | None, tick: int
) -> bool | None:
    if topic is None or subscriptions is None:
        return None
    return any(
        row["peer"] == peer
        and row["topic"] == topic
        and row["valid_from"] <= tick < row["valid_to"]
        for row in subscriptions
    )


def naive_interested(world: World, arrival: Row, topic: int | None) -> bool | None:
    """By the peer's word, else by its subscriptions, where none of them turns in the interval."""
    if arrival["subscribed"] is not None:
        return bool(arrival["subscribed"])
    peer, tick = arrival["peer"], arrival["tick"]
    if world.sampled_since is not None and tick > world.sampled_since:
        for row in world.subscriptions or ():
            if (row["peer"], row["topic"]) == (peer, topic) and tick in (
                row["valid_from"],
                row["valid_to"],
            ):
                return None
    return naive_interest(world.subscriptions, peer, topic, tick)


def naive_firsts(rows: list[Row], publisher: int | None) -> list[bool]:
    """At each peer the earliest of those told to be first, else the earliest, if not denied."""
    firsts = {}
    for peer in {row["peer"] for row in rows} - {publisher}:
        here = [row for row in rows if row["peer"] == peer]
        told = [row for row in here if row["first"]] or here
        earliest = min(told, key=lambda row: (row["tick"], row["arrival"]))
        firsts[peer] = earliest if earliest["first"] is not False else None
    return [firsts.get(row["peer"]) is row for row in rows]


def naive_receptions(published: Row, world: World) -> list[Row]:
    """The rows of the table, of one message."""
    observed = [row for row in world.receptions or () if row["message"] == published["message"]]
    firsts = naive_firsts(observed, published["publisher"])
    rows = [{**row, "first": first} for row, first in zip(observed, firsts, strict=True)]
    hops = naive_hops(rows)
    for row, hop in zip(rows, hops, strict=True):
        row["hop"] = hop
        row["subscribed"] = naive_interested(world, row, published["topic"])
        known = audience_known(published, world)
        row["eligible"] = row["peer"] in naive_eligible(published, world) if known else None
    return rows


def audience_known(published: Row, world: World) -> bool:
    told = published["publication_known"] and published["topic"] is not None
    return told and world.subscriptions is not None


def naive_missed(published: Row, world: World) -> set[int]:
    if not audience_known(published, world):
        return set()
    firsts = {row["peer"] for row in naive_receptions(published, world) if row["first"]}
    return naive_eligible(published, world) - firsts


def naive_audience(published: Row, world: World) -> set[int]:
    """Subscribers at the publication, also those that leave open what they received."""
    found = {
        peer
        for peer in range(PEERS)
        if naive_interest(world.subscriptions, peer, published["topic"], published["tick"])
    }
    return found - {published["publisher"]}


def naive_eligible(published: Row, world: World) -> set[int]:
    silent = {peer for peer, interval in world.unreported if interval == published["interval"]}
    return naive_audience(published, world) - silent


def naive_hits(published: Row, firsts: list[Row] | None, world: World) -> Row:
    names = ("eligible", "delivered", "delivered_in_interval", "hit_ratio", "late_deliveries")
    if not audience_known(published, world):
        return dict.fromkeys(names)
    eligible = naive_eligible(published, world)
    if firsts is None:
        return dict.fromkeys(names) | {"eligible": len(eligible)}
    reached = {row["peer"] for row in firsts} & eligible
    at_once = [
        row
        for row in firsts
        if row["peer"] in eligible and row["interval"] == published["interval"]
    ]
    audience = naive_audience(published, world)
    late = [row["subscribed"] for row in firsts if row["peer"] not in audience]
    ratio = len(reached) / len(eligible) if eligible else None
    return dict(
        zip(names, (len(eligible), len(reached), len(at_once), ratio, total(late)), strict=True)
    )


def total(flags: list[bool | None]) -> int | None:
    """How many are true, if all are known."""
    return None if None in flags else sum(map(bool, flags))


def naive_violations(published: Row, arrived: list[Row]) -> int | None:
    """Arrivals before the publication, or before the first one at the peer they came from."""
    at = {row["peer"]: row["time_us"] for row in arrived if row["first"]}
    if all(row["time_us"] is None for row in arrived):
        return None
    return sum(
        any(cause is not None and row["time_us"] < cause for cause in causes)
        for row in arrived
        if row["time_us"] is not None
        for causes in [(published["time_us"], at.get(row["previous_hop"]))]
    )


def naive_delays(published: Row, firsts: list[Row]) -> Row:
    delays = [
        row["time_us"] - published["time_us"]
        for row in firsts
        if row["time_us"] is not None and published["time_us"] is not None
    ]
    shares = {f"delay_us_p{share}": share for share in (50, 95, 99)}
    if not delays:
        return dict.fromkeys(["delay_us_mean", *shares, "delay_us_max"])
    found = {name: float(np.percentile(delays, share)) for name, share in shares.items()}
    return {"delay_us_mean": fmean(delays), **found, "delay_us_max": float(max(delays))}


def naive_message(published: Row, world: World) -> Row:
    """Its row of metrics/messages."""
    message = published["message"]
    told = {"message": message, "rejections": world.rejections.count(message)}
    if world.receptions is None:
        return dict.fromkeys(METRICS_MESSAGES.names) | told | naive_hits(published, None, world)
    arrived = naive_receptions(published, world)
    firsts = [row for row in arrived if row["first"]]
    hops = [row["hop"] for row in firsts if row["hop"] is not None]
    interest_known = world.subscriptions is not None and published["topic"] is not None
    every = world.duplicates_known
    return {
        **told,
        "receptions": len(arrived) if every else None,
        "first_receptions": len(firsts),
        "duplicates": len(arrived) - len(firsts) if every else None,
        "relay_receptions": total([NOT[row["subscribed"]] for row in arrived])
        if every and (interest_known or arrived)
        else None,
        "hops_mean": fmean(hops) if hops else None,
        "hops_max": max(hops, default=None),
        "hops_known": len(hops) or None,
        "redundancy": len(arrived) / len(firsts) - 1 if firsts and every else None,
        "causality_violations": naive_violations(published, arrived),
        **naive_hits(published, firsts, world),
        **naive_delays(published, firsts),
    }


def rows_of(world: World) -> list[Row]:
    """Rows of `ROWS`, as the fold takes them."""
    rows: list[Row] = [
        {"kind": SUBSCRIPTION, "peer": row["peer"], "other": row["topic"]}
        | {"tick": row["valid_from"], "time": row["valid_to"]}
        for row in world.subscriptions or ()
    ]
    rows += [{"kind": SILENCE, "peer": peer, "interval": at} for peer, at in world.unreported]
    of_messages = [{"kind": REJECTION, "message": message} for message in world.rejections]
    names = {"publisher": "peer", "topic": "other", "time_us": "time", "publication_known": "told"}
    for row in world.publications:
        renamed = {names.get(name, name): value for name, value in row.items()}
        of_messages.append({"kind": PUBLICATION, **renamed})
    names = {"previous_hop": "other", "time_us": "time", "first": "told", "publisher": ""}
    for row in world.receptions or ():
        renamed = {names.get(name, name): value for name, value in row.items()}
        of_messages.append({"kind": ARRIVAL, **renamed})
    return rows + sorted(of_messages, key=lambda row: row["message"])


def batches(rows: list[Row], size: int) -> Iterator[pa.RecordBatch]:
    told = [{name: row.get(name) for name in ROWS.names} for row in rows]
    for begin in range(0, len(rows), size):
        yield pa.RecordBatch.from_pylist(told[begin : begin + size], ROWS)


def fold_of(world: World, at_once: int = 50) -> MessageFold:
    return MessageFold(
        world.receptions is not None,
        world.subscriptions is not None,
        world.duplicates_known,
        at_once,
        world.sampled_since,
    )


def folded(world: World, at_once: int = 50, size: int = 30) -> dict[str, list[Row]]:
    fold = fold_of(world, at_once)
    found: dict[str, list[Row]] = {table.name: [] for table in fold.tables}
    schemas = {table.name: table.arrow for table in fold.tables}
    for name, rows in fold(batches(rows_of(world), size)):
        assert rows.schema == schemas[name]
        found[name] += rows.to_pylist()
    return found


def check(world: World, found: dict[str, list[Row]]) -> None:
    def order(row: Row) -> tuple[Any, ...]:
        return tuple((row[name] is not None, row[name]) for name in RECEPTIONS.key)

    expected = [row for one in world.publications for row in naive_receptions(one, world)]
    rows = [{name: row[name] for name in RECEPTIONS.names} for row in expected]
    assert ("receptions" in found) == (world.receptions is not None)
    received = found.get("receptions", [])
    assert [order(row) for row in received] == sorted(order(row) for row in rows)
    assert sorted(received, key=repr) == sorted(rows, key=repr)
    assert ("missed" in found) == (None not in (world.receptions, world.subscriptions))
    if "missed" in found:
        missed = [(one["message"], naive_missed(one, world)) for one in world.publications]
        pairs = [(message, peer) for message, peers in missed for peer in sorted(peers)]
        assert [(row["message"], row["peer"]) for row in found["missed"]] == pairs
    messages = [naive_message(published, world) for published in world.publications]
    assert len(found["metrics/messages"]) == len(messages)
    for row, wanted in zip(found["metrics/messages"], messages, strict=True):
        unlike = {
            name: (row[name], wanted[name])
            for name in METRICS_MESSAGES.names
            if not alike(row[name], wanted[name])
        }
        assert not unlike, row["message"]


def alike(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12)


@pytest.fixture(scope="module")
def world() -> World:
    return random_world(30, 200)


def test_message_tables_equal_plain_python(world: World) -> None:
    found = folded(world)
    check(world, found)
    assert len(found["missed"]) > len(world.publications)
    for name in METRICS_MESSAGES.names:  # no column is right because it is empty
        assert len({row[name] for row in found["metrics/messages"]}) > 2, name


def sampled(world: World) -> World:
    """The same by a clock whose ticks are intervals, from the second on."""
    subscriptions = [
        {
            **row,
            "valid_from": row["valid_from"] // TICKS_PER_INTERVAL,
            "valid_to": row["valid_to"] // TICKS_PER_INTERVAL,
        }
        if row["valid_to"] < OPEN
        else {**row, "valid_from": row["valid_from"] // TICKS_PER_INTERVAL}
        for row in world.subscriptions or ()
    ]
    return replace(
        world,
        publications=[{**row, "tick": row["interval"]} for row in world.publications],
        receptions=[{**row, "tick": row["interval"]} for row in world.receptions or ()],
        subscriptions=[row for row in subscriptions if row["valid_from"] < row["valid_to"]],
        sampled_since=1,
    )


def test_arrival_in_an_interval_in_which_a_subscription_turns_is_of_unknown_interest(
    world: World,
) -> None:
    coarse = sampled(world)
    found = folded(coarse)
    check(coarse, found)
    unknown = [row for row in found["receptions"] if row["subscribed"] is None]
    topics = {row["message"]: row["topic"] for row in world.publications}
    assert sum(topics[row["message"]] is not None for row in unknown) > 20


@pytest.mark.parametrize(("at_once", "size"), [(1, 1), (1, 1000), (10**6, 7), (40, 1), (3, 2)])
def test_message_tables_are_the_same_however_rows_come(
    world: World, at_once: int, size: int
) -> None:
    few = replace(
        world,
        publications=world.publications[:40],
        receptions=[row for row in world.receptions or () if row["message"] < 40],
        rejections=[message for message in world.rejections if message < 40],
    )
    assert folded(few, at_once, size) == folded(few)


def test_metrics_of_interest_without_subscriptions_are_null(world: World) -> None:
    wordless = [{**row, "subscribed": None} for row in world.receptions or ()]
    blind = replace(world, subscriptions=None, receptions=wordless)
    found = folded(blind)
    check(blind, found)
    unknown = {"eligible", "delivered", "hit_ratio", "late_deliveries", "relay_receptions"}
    rows = found["metrics/messages"]
    assert all(row[name] is None for row in rows for name in unknown)
    assert sum(row["receptions"] for row in rows) == len(world.receptions or ()) > 0


def test_message_tables_without_duplicates_leave_them_null(world: World) -> None:
    firsts_alone = replace(world, duplicates_known=False)
    found = folded(firsts_alone)
    check(firsts_alone, found)
    assert {row["duplicates"] for row in found["metrics/messages"]} == {None}


def test_message_tables_without_rejections_leave_them_null(world: World) -> None:
    fold = replace(fold_of(world), rejections_known=False)
    made = list(fold(batches(rows_of(world), 30)))
    found = [
        row for name, rows in made if name == METRICS_MESSAGES.name for row in rows.to_pylist()
    ]
    known = folded(world)[METRICS_MESSAGES.name]
    assert any(row["rejections"] for row in known)
    assert found == [row | {"rejections": None} for row in known]


def test_message_tables_without_receptions_equal_plain_python(world: World) -> None:
    unreported = replace(world, receptions=None)
    found = folded(unreported)
    check(unreported, found)
    rows = found["metrics/messages"]
    known = {name for name in METRICS_MESSAGES.names for row in rows if row[name] is not None}
    assert known == {"message", "eligible", "rejections"}


def test_message_tables_without_arrivals_equal_plain_python(world: World) -> None:
    silent = replace(world, receptions=[], rejections=[])
    found = folded(silent)
    check(silent, found)
    assert {row["receptions"] for row in found["metrics/messages"]} == {0}
    assert {row["delivered"] for row in found["metrics/messages"]} == {0, None}


def test_message_tables_of_nothing_are_empty() -> None:
    nothing = folded(World([], [], [], [], []))
    assert nothing == {"receptions": [], "missed": [], "metrics/messages": []}
    assert list(MessageFold(True, True)([])) == []


def test_messages_are_handed_out_as_soon_as_there_are_enough_rows(world: World) -> None:
    """Whole ones: five rows and a begun message are what is held at most."""
    rows = [
        {"kind": PUBLICATION, "message": m // 3, "interval": 0, "tick": 0} for m in range(0, 60)
    ]
    rows = [{**row, "kind": REJECTION if i % 3 else PUBLICATION} for i, row in enumerate(rows)]
    rows = [{**row, "told": True} for row in rows]

    nothing = pa.RecordBatch.from_pylist([], ROWS)

    def sizes(at_once: int) -> list[int]:
        told = [*batches(rows[:6], 1), nothing, *batches(rows[6:], 1)]
        found = MessageFold(False, False, at_once=at_once)(told)
        return [part.num_rows for _, part in found]

    assert sizes(1) == [1] * 20
    assert sizes(3) == [1] * 20
    assert sizes(4) == [1] * 20
    assert sizes(5) == [2] * 10
    assert sizes(61) == [20]


def one_message(*arrivals: Row, **published: Any) -> World:
    told = {"message": 0, "topic": 0, "publisher": 0, "interval": 0, "tick": 0, "time_us": 0}
    row = {"message": 0, "previous_hop": None, "interval": 0, "tick": 0, "time_us": None}
    more = {"first": None, "hop": None, "publisher": 0}
    rows = [{**row, **more, "arrival": i, **one} for i, one in enumerate(arrivals)]
    return World([{**told, "publication_known": True, **published}], rows, [], [], [])


def told(world: World, at_once: int = 50) -> list[str] | None:
    """What the fold says that some arrival has."""
    fold = fold_of(world, at_once)
    assert list(fold(batches(rows_of(world), 30)))
    said: list[str] | None = json.loads(fold.summary())
    return said


UNTOLD: Row = {"topic": None, "time_us": None}
"""Of a publication: neither who was to get it nor when it was made is known."""


@pytest.mark.parametrize(
    ("arrival", "published", "expected"),
    [
        ({}, {}, []),
        ({"previous_hop": 9}, {}, ["previous hops"]),
        ({"hop": 3}, {}, ["hops"]),
        ({"previous_hop": 0}, {}, ["hops", "previous hops"]),
        ({"time_us": 0}, {}, ["times of receptions"]),
        ({}, {"time_us": 0}, ["times of publications"]),
        ({}, {"topic": 0}, ["eligible peers of a message"]),
    ],
)
def test_capability_is_told_where_an_arrival_has_it(
    arrival: Row, published: Row, expected: list[str]
) -> None:
    both = one_message({"peer": 1}, {"peer": 2, **arrival}, **UNTOLD | published)
    assert told(both) == expected


def test_capabilities_are_those_of_all_messages_together() -> None:
    arrivals = [{"peer": 1, "hop": 3}, {"peer": 1, "message": 1, "time_us": 5}]
    both = one_message(*arrivals, **UNTOLD)
    published = [{**both.publications[0], "message": message} for message in (0, 1)]
    both = replace(both, publications=published)
    for at_once in (1, 50):
        assert told(both, at_once) == ["hops", "times of receptions"]


def test_capabilities_without_an_arrival_are_unknown() -> None:
    assert told(one_message()) is None


def test_capabilities_of_several_folds_are_told_once_each() -> None:
    assert join_capabilities([["hops", "a"], None, ("times", "hops")]) == ("a", "hops", "times")
    assert join_capabilities([None, []]) == ()
    assert join_capabilities([None, None]) is None


def test_delays_that_come_to_more_than_64_bits_have_no_mean() -> None:
    largest = LARGEST - 1
    world = one_message(*({"peer": peer, "time_us": largest} for peer in (1, 2)))
    (row,) = folded(world)["metrics/messages"]
    assert (row["delay_us_mean"], row["delay_us_max"]) == (None, float(largest))
    fits = one_message(*({"peer": peer, "time_us": LARGEST // 2} for peer in (1, 2)))
    (row,) = folded(fits)["metrics/messages"]
    assert row["delay_us_mean"] == (2 * (LARGEST // 2)) / 2


def test_negative_delays_are_summed_exactly() -> None:
    """Of doubles the small ones would be lost."""
    times = (-(2**62), 2**62, 3, 5)
    world = one_message(*({"peer": n + 1, "time_us": at} for n, at in enumerate(times)))
    (row,) = folded(world)["metrics/messages"]
    assert (row["delay_us_mean"], row["causality_violations"]) == (2.0, 1)


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("end", [-(2**63), 2**63 - 1])
def test_sums_are_exact_and_known_within_64_bits(end: int, more: int) -> None:
    rng = np.random.default_rng(7)
    others = [int(x) for x in rng.integers(-(2**62), 2**62, 40)]
    half = (end + more) // 2
    groups = [[half, end + more - half], others, [], [LARGEST] * 3, [-LARGEST] * 3]
    values = np.array([x for group in groups for x in group], np.int64)
    at = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    found = exact_sums(values, at, len(groups))
    fit = [-(2**63) <= sum(group) < 2**63 for group in groups]
    assert found.known.tolist() == fit
    wanted = [sum(group) for group, fits in zip(groups, fit, strict=True) if fits]
    assert found.values[found.known].tolist() == wanted


def test_delay_beyond_64_bits_is_unknown() -> None:
    world = one_message({"peer": 1, "time_us": LARGEST}, {"peer": 2, "time_us": -3}, time_us=-5)
    (row,) = folded(world)["metrics/messages"]
    assert (row["delay_us_max"], row["first_receptions"]) == (2.0, 2)


def test_hops_beyond_32_bits_are_unknown() -> None:
    most = 2**31 - 1
    world = one_message(
        {"peer": 1, "previous_hop": 9, "hop": most - 1},
        *({"peer": peer, "previous_hop": peer - 1} for peer in (2, 3, 4)),
    )
    found = {row["peer"]: row["hop"] for row in folded(world)["receptions"]}
    assert found == {1: most - 1, 2: most, 3: None, 4: None}


def test_largest_numbers_keep_messages_and_peers_apart() -> None:
    largest = 2**31 - 1
    peers = (largest, largest - 1)
    worlds = one_message({"peer": largest, "previous_hop": largest - 1}, publisher=largest - 1)
    taken = [{"peer": peer, "topic": largest, "valid_from": 0, "valid_to": OPEN} for peer in peers]
    moved = {"message": largest, "topic": largest}
    rows = [{**row, "message": largest} for row in worlds.receptions or ()]
    published = [{**worlds.publications[0], **moved}]
    found = folded(replace(worlds, publications=published, receptions=rows, subscriptions=taken))
    (received,), (measured,) = found["receptions"], found["metrics/messages"]
    assert (received["first"], received["hop"], received["subscribed"]) == (True, 1, True)
    assert (measured["eligible"], measured["delivered"]) == (1, 1)


@pytest.mark.parametrize("reports_arrivals", [True, False])
def test_own_metric_sees_what_is_known_of_a_message(reports_arrivals: bool) -> None:
    world = random_world(5, 40)
    world = world if reports_arrivals else replace(world, receptions=None)
    own = tuple(
        OwnFunction(
            OwnMetric(f"own_{name}", "message"),
            cloudpickle.dumps(partial(field_of_message, name)),  # type: ignore[no-untyped-call]
        )
        for name in ("topic", "publisher", "time_us")
    )
    fold = replace(fold_of(world), own=own)
    rows = [
        row
        for name, part in fold(batches(rows_of(world), 30))
        if name == METRICS_MESSAGES.name
        for row in part.to_pylist()
    ]
    assert len(rows) == len(world.publications)
    for row, published in zip(rows, world.publications, strict=True):
        for name in ("topic", "publisher", "time_us"):
            value = published[name] if reports_arrivals else None
            assert row[f"own_{name}"] == value, (name, published)


def field_of_message(name: str, message: Message) -> float | None:
    """What an own metric sees; null = unknown."""
    value: float | None = getattr(message, name)
    return value
