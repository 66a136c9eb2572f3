"""The Run nodes: what a run is, whether it can be queried, and its clock."""

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

FORMAT = 3
"""Of a copy of a run: changes with what labels, types and properties are called."""
State = Literal["loading", "complete", "removing"]

_RESUME = {"loading": "vizpub load {run}", "removing": "vizpub runs remove {run}"}


@dataclass(frozen=True)
class LoadedRun:
    """A run in Neo4j that may be asked."""

    driver: Driver
    database: str
    facts: RunFacts
    levels: tuple[int, ...] = ()
    """The `length_class` of its closed validity periods."""
    layers: tuple[str, ...] = ()
    """The layers of its links."""
    peers: int = 0
    partitions: Partitions = NONE
    """Which copies of its links and subscriptions there are."""
    state: str = ""
    """Other text after each transaction that grows the copy."""
    growing: bool = False
    """A growth has begun, and has not come to its end."""

    def rows(
        self, folder: str, statement: str, /, timeout: float | None = None, **parameters: Any
    ) -> list[list[Any]]:
        """All rows of one of our own statements; `$run` is given.

        Raises: Neo4jUnavailable, Neo4jAnswer, UseError where the time is up.
        """
        text = cypher.statement(folder, statement).text
        parameters["run"] = self.facts.name
        return sessions.rows(self.driver, self.database, text, parameters, timeout)


def open_run(driver: Driver, database: str, name: str) -> LoadedRun:
    """The run, to ask it.

    Raises: UnknownName, RunNotComplete, Neo4jUnavailable, Neo4jAnswer.
    """
    properties = run_properties(driver, database, name)
    if properties is None:
        states = run_states(driver, database)
        known = sorted(run for run, (state, _) in states.items() if state == "complete")
        raise UnknownName("run", name, known, "vizpub query runs")
    state = properties["state"]
    if state != "complete":
        raise RunNotComplete(name, state, _RESUME[state].format(run=name))
    if properties.get("format") != FORMAT:
        raise UseError(
            f"run '{name}' was loaded by another version of vizpub; load it again: "
            f"vizpub rebuild {name}"
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
    """The properties of a Run node, whatever its state; null where there is none."""
    found = _rows(driver, database, "run", run=name)
    return found[0][0] if found else None


def run_names(driver: Driver, database: str) -> list[str]:
    """The names of all runs, whatever their state."""
    return [name for (name,) in _rows(driver, database, "run-names")]


def run_states(driver: Driver, database: str) -> dict[str, tuple[State, str | None]]:
    """Of each run its state and the identity of its tables; null = unknown."""
    return {name: (state, tables) for name, state, tables in _rows(driver, database, "run-states")}


def _rows(driver: Driver, database: str, name: str, **parameters: Any) -> list[list[Any]]:
    return sessions.rows(driver, database, cypher.statement("read", name).text, parameters)


def properties_of(facts: RunFacts) -> dict[str, Any]:
    """The facts as properties of the Run node; null takes a property away."""
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
        # What is made of the run when it is asked for is not copied.
        "known": None if facts.known is None else sorted({*facts.known} - AFTERWARDS),
        # None where nothing was appended, as in copies of versions that knew no generations.
        "generation": facts.generation or None,
        "final": facts.final,
        "settled": facts.settled,
    }


def node_of(facts: RunFacts, partitions: Partitions, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a Run node but for its state; null = it has none of that name."""
    length = partitions.intervals
    return {"key": facts.name, **properties_of(facts), "partition_intervals": length, **summary}


def facts_of(properties: Mapping[str, Any]) -> RunFacts:
    """The facts read back from the Run node's properties."""
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
    """The partitions of a run's copy, by its Run node."""
    return Partitions(clock, properties.get("partition_intervals", 0))


def is_of_other_tables(properties: Mapping[str, Any], facts: RunFacts) -> bool:
    """Whether a Run node is of other tables than the facts; no, where theirs are unknown."""
    return facts.tables not in ("", properties.get("tables"))
