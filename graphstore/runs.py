"""The Run nodes: a run's facts, its state and its clock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from neo4j import Driver

from vizpub import cypher
from vizpub.graphstore.load.partitions import NONE, Partitions
from vizpub.graphstore.server import sessions
from vizpub.model.clock import Clock
from vizpub.model.errors import RunNotComplete, UnknownName, UseError
from vizpub.model.run import AFTERWARDS, RunFacts

FORMAT = 4
"""Version of a copy's labels, types and properties; changes when they do."""
State = Literal["loading", "complete", "removing"]

_RESUME = {
    "loading": "vizpub neo4j load {run}",
    "removing": "vizpub neo4j load {run} (vizpub runs remove {run} removes its tables too)",
}


@dataclass(frozen=True)
class LoadedRun:
    """A run in Neo4j that can be queried."""

    driver: Driver
    database: str
    facts: RunFacts
    levels: tuple[int, ...] = ()
    """The values of `length_class` among the closed validity periods."""
    layers: tuple[str, ...] = ()
    """The layers of its links."""
    peers: int = 0
    partitions: Partitions = NONE
    """The time partitions of its links and subscriptions."""
    state: str = ""
    """Changes with each transaction that grows the copy."""
    growing: bool = False
    """True if an incremental load has begun and not ended."""

    def rows(
        self, folder: str, statement: str, /, timeout: float | None = None, **parameters: Any
    ) -> list[list[Any]]:
        """Return all rows of one of our own statements, which gets the run's name as `$run`.

        Raises: Neo4jUnavailable, Neo4jAnswer, UseError if the time is up.
        """
        text = cypher.statement(folder, statement).text
        parameters["run"] = self.facts.name
        return sessions.rows(self.driver, self.database, text, parameters, timeout)


def open_run(driver: Driver, database: str, name: str) -> LoadedRun:
    """Open a complete run for queries.

    Raises: UnknownName, RunNotComplete, Neo4jUnavailable, Neo4jAnswer.
    """
    properties = run_properties(driver, database, name)
    if properties is None:
        states = run_states(driver, database)
        complete = sorted(run for run, (state, _) in states.items() if state == "complete")
        raise UnknownName("run", name, complete, "vizpub query runs")
    state = properties["state"]
    if state != "complete":
        raise RunNotComplete(name, state, _RESUME[state].format(run=name))
    if properties.get("format") != FORMAT:
        raise UseError(
            f"run '{name}' was loaded by another version of vizpub; load it again: "
            f"vizpub neo4j rebuild {name}"
        )
    facts = facts_of(properties)
    return LoadedRun(
        driver,
        database,
        facts,
        tuple(properties.get("levels", ())),
        tuple(properties.get("link_layers", ())),
        properties.get("peers", 0),
        partitions_in(properties, facts.clock),
        f"{facts.tables} {properties.get('grower')} {properties.get('turn')}",
        "grower" in properties,
    )


def run_properties(driver: Driver, database: str, name: str) -> dict[str, Any] | None:
    """Return the properties of a Run node in any state, or None if there is none."""
    rows = _rows(driver, database, "run", run=name)
    return rows[0][0] if rows else None


def run_names(driver: Driver, database: str) -> list[str]:
    """Return the names of all runs, in any state."""
    return [name for (name,) in _rows(driver, database, "run-names")]


def run_states(driver: Driver, database: str) -> dict[str, tuple[State, str | None]]:
    """Return each run's state and the identity of its tables (None = unknown), by name."""
    return {name: (state, tables) for name, state, tables in _rows(driver, database, "run-states")}


def _rows(driver: Driver, database: str, name: str, **parameters: Any) -> list[list[Any]]:
    return sessions.rows(driver, database, cypher.statement("read", name).text, parameters)


def properties_of(facts: RunFacts) -> dict[str, Any]:
    """Return the facts as properties of the Run node; None removes a property."""
    return {
        "format": FORMAT,
        "name": facts.name,
        "source": facts.source,
        "tick_us": facts.clock.tick_us,
        "ticks_per_interval": facts.clock.ticks_per_interval,
        "first": facts.clock.first,
        "last": facts.clock.last,
        "protocol": facts.protocol,
        "parameters": json.dumps(facts.parameters, sort_keys=True),
        "seed": facts.seed,
        "epoch": facts.epoch,
        "unknown": list(facts.unknown),
        "layers": None if facts.layers is None else list(facts.layers),
        "tables": facts.tables or None,
        # Tables that are made on demand are not copied.
        "known": None if facts.known is None else sorted({*facts.known} - AFTERWARDS),
        # None if nothing was appended, as in copies by versions without generations.
        "generation": facts.generation or None,
        "final": facts.final,
        "settled": facts.settled,
    }


def node_of(facts: RunFacts, partitions: Partitions, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a Run node except its state; None = no such property."""
    length = partitions.intervals
    return {"key": facts.name, **properties_of(facts), "partition_intervals": length, **summary}


def facts_of(properties: Mapping[str, Any]) -> RunFacts:
    """Read the facts back from the properties of a Run node."""
    layers, known = properties.get("layers"), properties.get("known")
    return RunFacts(
        name=properties["name"],
        source=properties["source"],
        clock=Clock(
            properties["ticks_per_interval"],
            properties.get("tick_us"),
            properties["first"],
            properties["last"],
        ),
        protocol=properties.get("protocol"),
        parameters=json.loads(properties["parameters"]),
        seed=properties.get("seed"),
        epoch=properties.get("epoch"),
        unknown=tuple(properties["unknown"]),
        layers=None if layers is None else tuple(layers),
        tables=properties.get("tables", ""),
        known=None if known is None else tuple(known),
        generation=properties.get("generation", 0),
        final=properties.get("final"),
        settled=properties.get("settled"),
    )


def partitions_in(properties: Mapping[str, Any], clock: Clock) -> Partitions:
    """Return the partitions of a run's copy, by the properties of its Run node.

    There are none if their length is invalid, which a verification reports.
    """
    length = properties.get("partition_intervals")
    return Partitions(clock, length if type(length) is int else 0)


def has_other_tables(properties: Mapping[str, Any], facts: RunFacts) -> bool:
    """Return True if a Run node was made from other tables than the facts describe."""
    # The identity of the tables is empty if it is unknown.
    return facts.tables not in ("", properties.get("tables"))
