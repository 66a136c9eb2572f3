"""What simulations take from stored runs: the command line hands it over as files of the workspace.

Peers that are present at the time are numbered from 0; a file beside tells their names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vizpub.cli.settings import Settings
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from vizpub.questions.run import Run


def subscriptions_of(settings: Settings, name: str, at: str) -> dict[str, Any]:
    """Peers and subscriptions of a run at a time, as the parameters `peers` and `workload`.

    Raises: UnknownName, OutOfRange, UseError.
    """
    from vizpub.questions.run import Run
    from vizpub.questions.snapshots import alive

    run = Run.open(settings.workspace, name)
    run.facts.check_known("presence", "subscriptions")
    tick = run.clock.parse_at(at, run.facts.epoch)
    place = _numbered(settings, run, name, at)
    taken = run.stored.read("subscriptions", ["peer", "topic"], alive(tick)).to_pylist()
    pairs = sorted({(place[s["peer"]], s["topic"]) for s in taken if s["peer"] in place})
    if not pairs:
        raise UseError(f"no peer of run '{name}' subscribes to anything at {at}")
    topics = _names(run, "topics", "topic")
    path = _path(settings, "subscriptions", name, at)
    _write(path, [("peer", "topic"), *((peer, topics[topic]) for peer, topic in pairs)])
    return {"peers": len(place), "workload": f"file:{path}"}


def topology_of(settings: Settings, name: str, at: str, layer: str | None) -> dict[str, Any]:
    """Peers and overlay of a run at a time, as the parameters `peers` and `topology`: its links of
    the layer, or of those that its metrics count, in both directions.

    Raises: UnknownName, OutOfRange, UseError.
    """
    from vizpub.questions.names import NamedRun
    from vizpub.questions.run import Run
    from vizpub.questions.snapshots import links_at

    run = Run.open(settings.workspace, name)
    run.facts.check_known("presence", "links")
    tick = run.clock.parse_at(at, run.facts.epoch)
    place = _numbered(settings, run, name, at)
    named = NamedRun(run.stored)
    layers = run.facts.layers if layer is None else named.checked_layers([layer])
    links = links_at(named, tick, layers).select(["src", "dst"]).to_pylist()
    ends = [(place[link["src"]], place[link["dst"]]) for link in links]
    edges = sorted({(min(pair), max(pair)) for pair in ends})
    if not edges:
        raise UseError(f"run '{name}' has no links at {at} in {layer or 'the layers it counts'}")
    path = _path(settings, "links", name, at if layer is None else f"{at}-{layer}")
    # A pair of equal numbers for each peer, so that no file begins with what looks like counts.
    _write(path, [*((peer, peer) for peer in place.values()), *edges])
    return {"peers": len(place), "topology": f"file:{path}"}


def _numbered(settings: Settings, run: Run, name: str, at: str) -> dict[int, int]:
    """The number of each peer that is present, from 0; writes the file of their names."""
    from vizpub.questions.snapshots import alive

    tick = run.clock.parse_at(at, run.facts.epoch)
    present = run.stored.read("presence", ["peer"], alive(tick))["peer"].unique().to_pylist()
    place = {peer: number for number, peer in enumerate(sorted(present))}
    peers = _names(run, "peers", "peer")
    path = _path(settings, "peers", name, at)
    _write(path, [("peer", "name"), *((number, peers[peer]) for peer, number in place.items())])
    settings.say(f"peers are numbered from 0; their names are in {path}")
    return place


def _names(run: Run, table: str, key: str) -> dict[int, str]:
    rows = run.stored.read(table, [key, "name"]).to_pylist()
    return {row[key]: row["name"] for row in rows}


def _path(settings: Settings, what: str, name: str, at: str) -> Path:
    return settings.workspace / "simulations" / f"{what}-of-{name}-{at.replace(':', '')}.csv"


def _write(path: Path, rows: Iterable[tuple[object, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(rows)
