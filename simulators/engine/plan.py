"""What to simulate: a system and its parameters, its world, and a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, make_dataclass
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from vizpub.model.errors import UnknownName, UseError
from vizpub.simulators.engine.parameters import (
    MOST_INTERVALS,
    MOST_PEERS,
    Count,
    Duration,
    Share,
    us,
)
from vizpub.simulators.engine.reporter import Content
from vizpub.simulators.engine.specs import check_value, fields_of, parse
from vizpub.simulators.engine.systems import name_anywhere, system_named
from vizpub.simulators.world.churn import CHURNS, Churn, Setting
from vizpub.simulators.world.client import (
    ALL_WORKLOADS,
    ClientInterest,
    ClientPublications,
    ClientWorkload,
)
from vizpub.simulators.world.interest import INTERESTS, InterestModel
from vizpub.simulators.world.latency import LATENCIES, Latency
from vizpub.simulators.world.own import OwnWorkload
from vizpub.simulators.world.publications import PUBLICATIONS, PublicationModel
from vizpub.simulators.world.subscriptions import Workload


@dataclass(frozen=True)
class SimulatedWorld:
    """The environment of a system."""

    peers: Annotated[int, Meta(ge=1, le=MOST_PEERS, description="Number of peers, up or down.")] = (
        100
    )
    intervals: Annotated[
        int, Meta(ge=1, le=MOST_INTERVALS, description="Reporting intervals to simulate.")
    ] = 100
    interval: Annotated[Duration, Meta(description="Length of a reporting interval.")] = "1s"
    workload: Annotated[str, Meta(description="Who subscribes to what.")] = "zipf"
    publications: Annotated[str, Meta(description="Who publishes when.")] = "none"
    interest: Annotated[str, Meta(description="Who changes subscriptions when.")] = "none"
    churn: Annotated[str, Meta(description="Who is up when.")] = "none"
    latency: Annotated[str, Meta(description="How long messages take.")] = "constant:10ms"
    loss: Annotated[Share, Meta(description="Share of messages that are lost.")] = 0.0
    upload: Annotated[Count, Meta(description="Bytes/s that each peer can send; 0 = no limit.")] = 0
    timeout: Annotated[
        Duration, Meta(description="Time after which an unacknowledged message has failed.")
    ] = "500ms"
    reports: Annotated[
        Content, Meta(description="What peers report: complete, structure or dissemination.")
    ] = "complete"

    links: Annotated[
        str, Meta(description="Layers whose links are reported: all, or names as a,b.")
    ] = "all"

    def __post_init__(self) -> None:
        """Check all parameters in advance. Raises: UseError, InputError."""
        for part in (
            self.get_workload,
            self.get_publications,
            self.get_interest,
            self.get_churn,
            self.get_latency,
        ):
            part()

    def get_workload(self) -> Workload:
        """The model of subscriptions."""
        return parse(self.workload, ALL_WORKLOADS, "workload")

    def get_publications(self) -> PublicationModel:
        """The model of publications, or the workload's own."""
        workload = self.get_workload()
        if isinstance(workload, ClientWorkload):
            self._refuse_beside_client("publications", self.publications)
            return ClientPublications(workload)
        return parse(self.publications, PUBLICATIONS, "publications")

    def get_interest(self) -> InterestModel:
        """The model of changing interest, or the workload's own."""
        workload = self.get_workload()
        if isinstance(workload, ClientWorkload):
            self._refuse_beside_client("interest", self.interest)
            return ClientInterest(workload)
        return parse(self.interest, INTERESTS, "interest")

    def _refuse_beside_client(self, option: str, value: str) -> None:
        if value != "none":
            raise UseError(f"workload 'client' has its own {option}: leave out {option} '{value}'")

    def get_churn(self) -> Churn:
        """The model of churn."""
        return parse(self.churn, CHURNS, "churn")

    def get_latency(self) -> Latency:
        """The model of latencies."""
        return parse(self.latency, LATENCIES, "latency")

    def chosen_layers(self, there_are: Sequence[str]) -> tuple[str, ...] | None:
        """The layers whose links are reported; null = all.

        Raises: UnknownName.
        """
        if self.links == "all":
            return None
        chosen = tuple(name.strip() for name in self.links.split(","))
        for name in chosen:
            if name not in there_are:
                raise UnknownName("layer", name, there_are)
        return chosen

    @property
    def setting(self) -> Setting:
        """Size and length of the run, for churn and publications."""
        interval_us = us(self.interval)
        return Setting(self.peers, self.intervals * interval_us, interval_us)


@dataclass(frozen=True)
class Plan:
    """A run to simulate. The same plan gives the same reports, byte for byte."""

    system: str
    parameters: Any
    """The system's parameters: an instance of their class."""
    world: SimulatedWorld
    seed: int = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the names of classes and their values: other processes load a user's class from
        its file.
        """
        values = {of.name: getattr(self.parameters, of.name) for of in fields(self.parameters)}
        made = name_anywhere(self.system), values
        return _restore_plan, (self.system, made, self.world, self.seed)

    @property
    def protocol(self) -> str:
        """The name of the system, or of the class it is."""
        return self.system.rpartition(":")[2].lower()

    @property
    def name(self) -> str:
        """Name of the run in its reports."""
        return f"{self.protocol}-{self.seed}"

    @property
    def layers(self) -> Sequence[str]:
        """The layers of the system's links."""
        return system_named(self.system).make.layers

    @property
    def growth(self) -> float:
        """The power of the number of peers that the time of the system grows with."""
        return system_named(self.system).make.growth

    @property
    def own_workload(self) -> OwnWorkload | None:
        """Subscriptions and publications that the system brings; null = the world's."""
        return system_named(self.system).make.workload(self.parameters, self.world.peers, self.seed)

    def describe(self) -> dict[str, Any]:
        """All parameters except the seed by name: the system's, then the world's. Without a change
        of interest they are those of a run made before there were any.
        """
        described = self._chosen()
        if self.world.interest == "none":
            described.pop("interest", None)
        return described

    def _chosen(self) -> dict[str, Any]:
        """All parameters that count, except the seed."""
        chosen = {**asdict(self.parameters), **asdict(self.world)}
        idle = _OF_OWN if self.own_workload is not None else ()
        return {name: value for name, value in chosen.items() if name not in idle}

    def list_changes(self, stored: Mapping[str, Any]) -> list[str]:
        """Differences of a run's stored parameters from the plan's, as text: 'peers 16, not 17'.

        What only the run has is not compared: systems describe more than parameters
        (System.header_facts).
        """
        earlier = {"interest": "none", **stored}
        now = self._chosen()
        names = [name for name in now if earlier.get(name) != now[name]]
        return [f"{name} {earlier.get(name)}, not {now[name]}" for name in names]


def make_plan(system: str, chosen: Mapping[str, Any], seed: int = 1) -> Plan:
    """A plan from named parameters of the system and the world; others have their defaults.

    Raises: UnknownName (system), UseError, InputError.
    """
    of_system = system_named(system).parameters_type
    ours = {
        name: value for name, value in chosen.items() if name in SimulatedWorld.__dataclass_fields__
    }
    theirs = {name: value for name, value in chosen.items() if name not in ours}
    plan = Plan(
        system,
        _convert_values(theirs, of_system),
        SimulatedWorld(**asdict(_convert_values(ours, world_of(system)))),
        seed,
    )
    plan.world.chosen_layers(plan.layers)
    if plan.own_workload is not None:
        for name in _OF_OWN:
            if getattr(plan.world, name) != getattr(SimulatedWorld, name):
                option = f"--{name} '{getattr(plan.world, name)}'"
                raise UseError(f"{plan.protocol} has its own world: leave out {option}")
    return plan


def _restore_plan(
    system: str, made: tuple[str, Mapping[str, Any]], world: SimulatedWorld, seed: int
) -> Plan:
    name, values = made
    return Plan(system, system_named(name).parameters_type(**values), world, seed)


_OF_OWN = ("workload", "publications", "interest", "churn", "upload")
"""What of the world does not count for a system with a workload of its own."""


def world_of(system: str) -> type[SimulatedWorld]:
    """The parameters of the world with the system's own defaults. Raises: UnknownName."""
    defaults = system_named(system).make.defaults
    types = get_type_hints(SimulatedWorld, include_extras=True)
    own_defaults = [(name, types[name], value) for name, value in defaults.items()]
    return (
        make_dataclass("World", own_defaults, bases=(SimulatedWorld,), frozen=True)
        if own_defaults
        else SimulatedWorld
    )


def _convert_values(values: Mapping[str, Any], kind: type[Any]) -> Any:
    if unknown := sorted(values.keys() - kind.__dataclass_fields__.keys()):
        raise UseError(
            f"there is no parameter '{unknown[0]}'; there are: "
            f"{', '.join([*kind.__dataclass_fields__, *SimulatedWorld.__dataclass_fields__])}"
        )
    types, parameters = get_type_hints(kind, include_extras=True), fields_of(kind)
    right = {
        name: check_value(name, value, parameters[name], types[name])
        for name, value in values.items()
    }
    try:
        return msgspec.convert(right, kind)
    except msgspec.ValidationError as error:
        raise UseError(str(error)) from error
