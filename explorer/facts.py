"""The facts that the page shows of a workspace's runs, and of one run before it is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vizpub.explorer import columns
from vizpub.explorer.attributes import find_attributes
from vizpub.explorer.history import History
from vizpub.explorer.messages import explain_unknown_coverage
from vizpub.explorer.server.live import is_live
from vizpub.model.arrays import Floats
from vizpub.model.errors import VizpubError
from vizpub.questions.names import NamedRun
from vizpub.questions.sums.totals import hit_ratio
from vizpub.runstore.store import BrokenRun, StoredRun, runs

_POINTS = 80
"""Of a curve in the list of the runs."""


def list_runs(workspace: Path) -> list[dict[str, Any]]:
    """A row for each run: its name, state and figures; null where a figure is unknown."""
    return [_row(run) for run in runs(workspace)]


def _row(run: StoredRun | BrokenRun) -> dict[str, Any]:
    if isinstance(run, BrokenRun):
        return {"run": run.name, "state": "broken", "why": str(run.error)}
    facts: dict[str, Any] = {
        "run": run.name,
        "state": run.manifest.state,
        "source": run.manifest.source,
        "protocol": run.manifest.protocol,
        "live": is_live(run),
    }
    if not run.manifest.complete:
        return facts
    try:
        return facts | _figures(NamedRun(run))
    except VizpubError as error:
        return facts | {"state": "broken", "why": str(error)}


def _figures(run: NamedRun) -> dict[str, Any]:
    stored, clock = run.stored, run.clock
    return {
        "peers": stored.rows("peers"),
        "topics": stored.rows("topics") if run.facts.knows("topics") else None,
        "intervals": clock.intervals,
        "interval_us": clock.interval_us,
        "messages": stored.rows("publications") if run.facts.knows("publications") else None,
        "hit_ratio": hit_ratio(stored),
        "curve": _curve(run),
    }


def _curve(run: NamedRun) -> dict[str, Any] | None:
    """The number of peers through time, in few points; null where presence is unknown."""
    if not run.stored.has("metrics/overlay"):
        return None
    values = columns.curve(run, "network_size")
    if np.isnan(values).all():
        return None
    places = np.linspace(0, values.size - 1, min(values.size, _POINTS)).round().astype(int)
    return {"of": "network_size", "values": jsonable(values[places])}


def describe_run(history: History, older: History | None = None) -> dict[str, Any]:
    """The facts of a run that a page needs before it asks for arrays; `peers` and `topics` without
    those that it had when it was `older`, whose numbers are `known`.
    """
    run, facts, clock = history.run, history.run.facts, history.run.clock
    attributes = [attribute.describe() for attribute in find_attributes(run)]
    known: list[list[str]] = [[], []]
    if older is not None:
        names = (older.peer_names, history.peer_names), (older.topic_names, history.topic_names)
        known = [old if new[: len(old)] == old else [] for old, new in names]
    return {
        "run": facts.name,
        "identity": facts.tables,
        "source": facts.source,
        "protocol": facts.protocol,
        "clock": {
            "first": clock.first,
            "last": clock.last,
            "ticks": clock.ticks_per_interval,
            "tick_us": clock.tick_us,
        },
        "whole": [facts.clock.first, facts.clock.last],
        "epoch": facts.epoch,
        "live": is_live(run.stored),
        "known": [len(names) for names in known],
        "peers": history.peer_names[len(known[0]) :],
        "topics": history.topic_names[len(known[1]) :],
        "layers": history.layers,
        "counted": list(facts.layers or history.layers),
        "knows": {
            name: facts.knows(name)
            for name in ("presence", "links", "subscriptions", "publications", "receptions")
        }
        | {"relays": history.knows_relays},
        "unknown": list(facts.unknown),
        "unknown_coverage": explain_unknown_coverage(run),
        "columns": {
            "peers": [*columns.of_peers(run), *(of for of in attributes if "groups" not in of)],
            "groups": [of for of in attributes if "groups" in of],
            "topics": columns.of_topics(run),
            "links": columns.of_links(run),
            "overlay": columns.of_overlay(run),
        },
        "block": columns.per_block(run),
    }


def jsonable(values: Floats) -> list[float | None]:
    """Numbers of JSON, which has no NaN."""
    return [None if np.isnan(value) else float(value) for value in values]
