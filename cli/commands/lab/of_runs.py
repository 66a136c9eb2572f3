"""Files of the workspace that hand parts of stored runs to simulations.

Peers that are present at the time are numbered from 0; a file beside tells their names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from hashlib import blake2b
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vizpub.cli.settings import Settings
from vizpub.machine.files import replacing
from vizpub.model.errors import UseError

if TYPE_CHECKING:
    from vizpub.questions.run import Run


def subscriptions_of(settings: Settings, name: str, at: str) -> dict[str, Any]:
    """Write the subscriptions of a run at a time; return the parameters `peers` and `workload`.

    Raises: UnknownName, OutOfRange, UseError.
    """
    from vizpub.questions.run import Run
    from vizpub.questions.snapshots import alive

    run = Run.open(settings.workspace, name)
    run.facts.check_known("presence", "subscriptions")
    tick = run.tick_at(at)
    number_of = _number_peers(settings, run, tick)
    held = run.stored.read("subscriptions", ["peer", "topic"], alive(tick)).to_pylist()
    pairs = sorted({(number_of[s["peer"]], s["topic"]) for s in held if s["peer"] in number_of})
    if not pairs:
        raise UseError(f"no peer of run '{name}' subscribes to anything at {at}")
    topics = run.topics
    rows = [("peer", "topic"), *((peer, topics[topic]) for peer, topic in pairs)]
    path = _write(settings, "subscriptions", run, tick, rows)
    return {"peers": len(number_of), "workload": f"file:{path}"}


def overlay_of(settings: Settings, topology: object) -> dict[str, Any]:
    """Return the parameters `peers` and `topology` if this is the overlay of a stored run.

    Raises: UnknownName, OutOfRange, UseError.
    """
    from vizpub.simulators.engine.specs import parse
    from vizpub.simulators.protocols.broadcast.topologies import GraphOfRun

    if not isinstance(topology, str) or not topology.startswith("run:"):
        return {}
    topology_run = parse(topology, {"run": GraphOfRun}, "topology")
    return _topology_of(settings, topology_run.run, topology_run.at, topology_run.layer)


def _topology_of(settings: Settings, name: str, at: str, layer: str | None) -> dict[str, Any]:
    """Write the overlay of a run at a time; return the parameters `peers` and `topology`.

    The overlay has the links of the layer, or of those that the run's metrics count, in both
    directions.

    Raises: UnknownName, OutOfRange, UseError.
    """
    from vizpub.questions.run import Run
    from vizpub.questions.snapshots import distinct_links

    run = Run.open(settings.workspace, name)
    run.facts.check_known("presence", "links")
    tick = run.tick_at(at)
    number_of = _number_peers(settings, run, tick)
    layers = run.counted_layers(None if layer is None else [layer])
    links = distinct_links(run, tick, layers).to_pylist()
    ends = [(number_of[link["src"]], number_of[link["dst"]]) for link in links]
    edges = sorted({(min(pair), max(pair)) for pair in ends})
    if not edges:
        raise UseError(f"run '{name}' has no links at {at} in {layer or 'the layers it counts'}")
    # A pair of equal numbers for each peer, so that no file begins with what looks like counts.
    rows = [*((peer, peer) for peer in number_of.values()), *edges]
    path = _write(settings, "links", run, tick, rows)
    return {"peers": len(number_of), "topology": f"file:{path}"}


def _number_peers(settings: Settings, run: Run, tick: int) -> dict[int, int]:
    """Number the peers that are present, from 0, and write the file of their names."""
    from vizpub.questions.snapshots import alive

    present = run.stored.read("presence", ["peer"], alive(tick))["peer"].unique().to_pylist()
    number_of = {peer: number for number, peer in enumerate(sorted(present))}
    peers = run.peers
    rows = [("peer", "name"), *((number, peers[peer]) for peer, number in number_of.items())]
    path = _write(settings, "peers", run, tick, rows)
    settings.say(f"peers are numbered from 0; their names are in {path}")
    return number_of


def _write(
    settings: Settings, content: str, run: Run, tick: int, rows: Iterable[tuple[object, object]]
) -> Path:
    """Write what a run has at a tick. A simulation is known by its parameters, and so by this path:
    the path has a digest, as a later run of that name may have other rows.
    """
    text = StringIO(newline="")
    csv.writer(text).writerows(rows)
    encoded = text.getvalue().encode("utf-8")
    name = f"{content}-of-{run.facts.name}-{tick}-{blake2b(encoded, digest_size=4).hexdigest()}.csv"
    path = settings.workspace / "simulations" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        new.write_bytes(encoded)
    return path
