"""The way of one message: its copies, who missed it and why, and what gives the same elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vizpub.cypher import statement
from vizpub.explorer.columns import numbers
from vizpub.explorer.commands import cypher_text, shell_command
from vizpub.model.errors import UseError
from vizpub.model.run import DUPLICATES, HOPS, PREVIOUS_HOPS, TIMES
from vizpub.questions.deliveries import reasons_of_message, reasons_of_messages
from vizpub.questions.names import NamedRun
from vizpub.questions.snapshots import coverage, spread_of

Arrays = dict[str, npt.NDArray[Any]]
ROLES = ("publisher", "subscriber", "relay", "peer", "missed")
UNKNOWN = 2
"""Of a flag, beside 0 and 1."""
_NONE = -1
"""No peer, or no hop."""


def describe_message(run: NamedRun, message: int) -> tuple[dict[str, Any], Arrays]:
    """Facts and arrays of a message, by its number.

    Arrays by what a row is of:
        copy_…     from, to, hop, time_us, first, subscribed, eligible: as `receptions`, in the
                   order of `vizpub message`; -1, NaN and 2 are unknown; held (which of the copies
                   its sender passed on, if not its first, else -1), row (in layers by hop, where
                   its receiver stands again with it, else NaN)
        peer_…     of those it reached, missed or passed: peer, role (a place in ROLES), hop,
                   duplicates, eligible, rendezvous, row (in layers by hop)
        refused_…  from, to, time_us, why (a place in `reasons`)
        delay_…    at, delivered: eligible peers reached after so many µs
        hop_…      at, delivered: likewise, by hop

    Raises: UseError where receptions are unknown.
    """
    run.facts.check_known("receptions")
    published = run.publication(message)
    name: str = published["name"]
    peers, copies = spread_of(run, message)
    refused, reasons = _refusals(run, message)
    arrays = _copies(copies) | _peers(peers, copies) | _rows(peers, copies) | refused
    facts = {
        "message": message,
        "name": name,
        "topic": published["topic"],
        "publisher": published["publisher"],
        "tick": published["tick"],
        "interval": published["interval"],
        "published_us": published["time_us"],
        "publication_known": published["publication_known"],
        "figures": _figures(run, message),
        "reasons": reasons,
        "unknown": _capabilities(run),
        "provisional": run.facts.provisional(published["interval"]),
        "beside": _beside(run, message, published["topic"]),
        "commands": _commands(run, message, name),
    }
    for along, column in (("delay", "delay_us"), ("hop", "hop")):
        try:
            rows = coverage(run, [name], column)
        except UseError:
            rows = pa.table({column: [], "delivered": []})
        arrays[f"{along}_at"] = numbers(rows[column])
        arrays[f"{along}_delivered"] = numbers(rows["delivered"])
    return facts, arrays


def missed_peers(run: NamedRun, message: int) -> list[dict[str, Any]]:
    """Rows as of `vizpub message --missed`: peer (number), neighbours, neighbours_with_it, why.

    Raises: UseError where it is unknown.
    """
    return _with_numbers(run, reasons_of_message(run, run.publication(message)["name"]))


def missed_peers_of(run: NamedRun, messages: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """Rows as of `missed_peers` of messages that some peer missed, by message, asked at once.

    Raises: UseError where eligible peers are unknown.
    """
    rows = defaultdict[int, list[dict[str, Any]]](list)
    for row in _with_numbers(run, reasons_of_messages(run, messages)):
        rows[row.pop("message")].append(row)
    return rows


def _with_numbers(run: NamedRun, reasons: pa.Table) -> list[dict[str, Any]]:
    rows = reasons.to_pylist()
    number = {name: place for place, name in enumerate(run.peers)} if rows else {}
    return [row | {"peer": number[row["peer"]]} for row in rows]


def _copies(copies: pa.Table) -> Arrays:
    flags = {name: _flags(copies[name]) for name in ("first", "subscribed", "eligible")}
    return {
        "copy_from": _places(copies["previous_hop"]),
        "copy_to": _places(copies["peer"]),
        "copy_hop": _places(copies["hop"]),
        "copy_time_us": numbers(copies["time_us"]),
        **{f"copy_{name}": values for name, values in flags.items()},
    }


def _peers(peers: pa.Table, copies: pa.Table) -> Arrays:
    reached = copies.filter(pc.fill_null(copies["eligible"], False))["peer"].to_pylist()
    missed = peers.filter(pc.equal(peers["role"], "missed"))["peer"].to_pylist()
    eligible = {*reached, *missed}
    return {
        "peer_peer": _places(peers["peer"]),
        "peer_role": np.array([ROLES.index(role) for role in peers["role"].to_pylist()], np.uint8),
        "peer_hop": _places(peers["hop"]),
        "peer_duplicates": numbers(peers["duplicates"]),
        "peer_eligible": np.array(
            [peer in eligible for peer in peers["peer"].to_pylist()], np.uint8
        ),
        "peer_rendezvous": _flags(peers["rendezvous"]),
    }


def _rows(peers: pa.Table, copies: pa.Table) -> Arrays:
    """Rows in layers by hop, of the peers and of the later copies that some passed on."""
    from vizpub.analytics.figures.layouts import add_later_copies, in_layers, later_copies

    reached, way = peers.to_pylist(), copies.to_pylist()
    standing, moved = add_later_copies(reached, way)
    rows = {peer: row for peer, (_, row) in in_layers(standing, moved).places.items()}
    again = [rows[row["peer"]] if row["peer"] < 0 else np.nan for row in moved]
    held = [_NONE if place is None else place for place in later_copies(reached, way)]
    return {
        "peer_row": np.array([rows[row["peer"]] for row in reached], np.float32),
        "copy_row": np.array(again, np.float32),
        "copy_held": np.array(held, np.int32),
    }


def _refusals(run: NamedRun, message: int) -> tuple[Arrays, list[str]]:
    """Arrays, and the reasons."""
    columns = ["peer", "previous_hop", "time_us", "reason"]
    rows = run.stored.read("rejections", columns, pc.field("message") == message)
    given_reasons = [why or "no reason given" for why in rows["reason"].to_pylist()]
    reasons = sorted(set(given_reasons))
    arrays: Arrays = {
        "refused_from": _places(rows["previous_hop"]),
        "refused_to": _places(rows["peer"]),
        "refused_time_us": numbers(rows["time_us"]),
        "refused_why": np.array([reasons.index(why) for why in given_reasons], np.uint16),
    }
    return arrays, reasons


def _figures(run: NamedRun, message: int) -> dict[str, Any]:
    """Its row of metrics/messages."""
    if not run.stored.has("metrics/messages"):
        return {}
    rows = run.stored.read("metrics/messages", where=pc.field("message") == message).to_pylist()
    return {key: value for row in rows for key, value in row.items() if key != "message"}


def _capabilities(run: NamedRun) -> dict[str, str | None]:
    """Why times, hops, previous hops and duplicates are unknown; null = they are not."""
    names = {"times": TIMES, "hops": HOPS, "previous_hops": PREVIOUS_HOPS, "duplicates": DUPLICATES}
    return {key: run.facts.explain_missing(name) for key, name in names.items()}


def _beside(run: NamedRun, message: int, topic: int | None) -> list[int | None]:
    """The messages of the topic before and after it; null = there is none."""
    if topic is None:
        return [None, None]
    messages: npt.NDArray[Any] = run.stored.read(
        "publications", ["message"], pc.field("topic") == topic
    )["message"].to_numpy()
    place = int(np.searchsorted(messages, message))
    previous = int(messages[place - 1]) if place else None
    following = int(messages[place + 1]) if place + 1 < messages.size else None
    return [previous, following]


def _commands(run: NamedRun, message: int, name: str) -> dict[str, str]:
    """Commands, and queries to Neo4j, that give the same."""
    run_name = run.facts.name
    return {
        "copies": shell_command(["vizpub", "message", run_name], [name]),
        "missed": shell_command(["vizpub", "message", "--missed", run_name], [name]),
        "figure": shell_command(
            ["vizpub", "plot", "--kind", "tree", "-o", "tree.png", run_name], [name]
        ),
        "cypher": _cypher("dissemination-tree", run_name, message),
        "cypher_missed": _cypher("missed-subscribers", run_name, message),
    }


def _cypher(query: str, run: str, message: int) -> str:
    """A query of `vizpub query`, with the run and the message in it."""
    lines = statement("queries", query).text.splitlines()
    text = "\n".join(line for line in lines if not line.startswith("//"))
    # The key of a message in Neo4j (vizpub.graphstore.load.batches).
    return text.replace("$message", cypher_text(f"{run}/{message}")).replace(
        "$run", cypher_text(run)
    )


def _places(column: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    values: npt.NDArray[np.int32] = pc.fill_null(column.cast(pa.int32()), _NONE).to_numpy()
    return values


def _flags(column: pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    values: npt.NDArray[np.uint8] = pc.fill_null(column.cast(pa.uint8()), UNKNOWN).to_numpy()
    return values
