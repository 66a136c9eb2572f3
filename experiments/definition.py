"""An evaluation: systems in a world, with seeds, and the expected results.

It is a TOML file that `read` reads: which runs are made, which metrics are reported, what is
drawn, and the published values to compare with. At scale `small`, values of the table `small`
replace those outside of it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from vizpub.experiments.claims import Claim
from vizpub.experiments.drawings import Drawing
from vizpub.experiments.groups import Group, Setting, Share, System, groups_of
from vizpub.machine.files import text_of
from vizpub.model.errors import InputError, UnknownName, UseError, cause_of
from vizpub.simulators.engine.files import found
from vizpub.simulators.engine.plan import Plan, planned
from vizpub.simulators.engine.systems import system_named

if TYPE_CHECKING:
    from vizpub.analytics.own import Own
    from vizpub.model.own import OwnMetric

_SCALES = ("small", "full")
_SUFFIX = ".toml"


class Data(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that is not shipped."""

    file: str
    source: str
    """Where to get it."""


class Content(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file, at one scale."""

    title: str
    about: str
    source: str
    world: dict[str, Any]
    systems: tuple[System, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    own_metrics: tuple[str, ...] = ()
    """Own metrics to measure: FILE.py:NAME, from the folder of the TOML file."""
    settings: tuple[Setting, ...] = (Setting(),)
    axis: str = ""
    """Meaning of the settings' `x`."""
    window: Share = (0.0, 1.0)
    """The part of the run over which metrics are averaged."""
    data: tuple[Data, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the reader of the report."""
    figures: tuple[Drawing, ...] = ()
    published: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """An evaluation at one scale."""

    name: str
    scale: str
    content: Content
    own: tuple[Own, ...] = ()
    """The own metrics with their functions."""

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every system in every setting."""
        return tuple(
            Group(system, setting)
            for setting in self.content.settings
            for system in self.content.systems
        )

    def group(self, name: str) -> Group:
        """The group of that name. Raises: UnknownName."""
        for group in self.groups:
            if group.name == name:
                return group
        raise UnknownName("group", name, [group.name for group in self.groups])

    def seeds(self, runs: int | None = None) -> tuple[int, ...]:
        """`runs` seeds: those in the file, then the numbers after them."""
        seeds = self.content.seeds
        wanted = len(seeds) if runs is None else runs
        more = range(max(seeds) + 1, max(seeds) + 1 + max(0, wanted - len(seeds)))
        return (*seeds, *more)[:wanted]

    def plan(self, group: Group, seed: int) -> Plan:
        """The plan of a simulation. Raises: InputError naming the group."""
        chosen = {
            **self.content.world,
            **group.setting.parameters,
            **group.system.parameters,
        }
        try:
            return planned(group.system.system, {**_reported(group.system), **chosen}, seed)
        except UseError as error:
            raise InputError(f"experiment '{self.name}', {group.name}: {error}") from error

    def check_data(self) -> None:
        """Raises: InputError naming every missing file and where to get it."""
        missing = [data for data in self.content.data if not _is_there(data.file)]
        if missing:
            raise InputError(
                f"experiment '{self.name}' at scale {self.scale} needs data that is missing: "
                f"{', '.join(data.file for data in missing)}",
                "\n  ".join(
                    [
                        *(f"{data.file}: {data.source}" for data in missing),
                        "give the folder that has them: --data DIR, or VIZPUB_DATA",
                    ]
                ),
            )


def _reported(system: System) -> dict[str, str]:
    """The option that limits reported links to the measured layers, if the system has them all."""
    layers = set(system.layers or ())
    known = set(system_named(system.system).make.layers)
    return {"links": ",".join(system.layers or ())} if layers and layers <= known else {}


def _is_there(file: str) -> bool:
    try:
        return bool(found(file))
    except InputError:
        return False


def shipped() -> list[str]:
    """The names of the experiments that come with vizpub."""
    folder = files("vizpub.experiments").iterdir()
    return sorted(item.name.removesuffix(_SUFFIX) for item in folder if item.name.endswith(_SUFFIX))


def known() -> list[str]:
    """The names of all experiments: those in files, and those that are measured by code."""
    from vizpub.experiments import cd_max, channels, gossip

    return sorted([*shipped(), cd_max.NAME, channels.NAME, gossip.NAME])


def read(name: str, scale: str = "full") -> Experiment:
    """The experiment of that name, or of that TOML file.

    Raises: UnknownName for the name or scale; InputError for a file that cannot be read, or for
    invalid content, with its place in the file.
    """
    if scale not in _SCALES:
        raise UnknownName("scale", scale, _SCALES)
    text = _text(name)
    try:
        given = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not TOML: {error}") from error
    smaller = given.pop("small", {})
    if scale == "small":
        given = merged(given, smaller)
    content = _converted(name, given)
    own = _own(name, content.own_metrics)
    experiment = Experiment(Path(name).name.removesuffix(_SUFFIX), scale, content, own)
    _check(name, experiment)
    return experiment


def _own(name: str, named: Sequence[str]) -> tuple[Own, ...]:
    if not named:
        return ()
    from vizpub.ingest.measures.own import own_metrics

    folder = Path(name).parent
    return own_metrics(str(folder / one) if ":" in one else one for one in named)


def own_of(own: Sequence[Own]) -> tuple[OwnMetric, ...]:
    """The own metrics without their functions."""
    return tuple(one.metric for one in own)


def _text(name: str) -> str:
    if not name.endswith(_SUFFIX):
        if name not in shipped():
            raise UnknownName("experiment", name, known(), "vizpub experiment list")
        return (files("vizpub.experiments") / f"{name}{_SUFFIX}").read_text("utf-8")
    try:
        return text_of(Path(name))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read: {cause_of(error)}") from error


def merged(whole: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """`whole` updated with `other`: tables are merged, other values replaced."""
    result = dict(whole)
    for key, value in other.items():
        before = result.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            result[key] = merged(before, value)
        else:
            result[key] = value
    return result


def _converted(name: str, given: Mapping[str, Any]) -> Content:
    try:
        return msgspec.convert(given, Content)
    except msgspec.ValidationError as error:
        raise InputError(f"{name}: {_plainly(str(error))}") from error


def _plainly(message: str) -> str:
    """'published 3: there is no `what`' from 'Object missing … - at `$.published[2]`'."""
    what, _, place = message.partition(" - at `$")
    words = {"Object missing required field": "there is no", "Object contains unknown field": "no"}
    for before, after in words.items():
        what = what.replace(before, after)
    where = re.sub(r"\[(\d+)\]", lambda found: f" {int(found[1]) + 1}", place.rstrip("`"))
    where = where.replace("[...]", " (a value)").lstrip(".").replace(".", ", ")
    return f"{where}: {what}" if where else what


def _check(name: str, experiment: Experiment) -> None:
    """Raises: InputError for errors that the types cannot express."""
    content = experiment.content
    if not (content.systems and content.settings and content.seeds and content.metrics):
        raise InputError(f"{name}: give at least one system, setting, seed and metric")
    if len({group.slug for group in experiment.groups}) < len(experiment.groups):
        raise InputError(f"{name}: two groups have the same name")
    places = [setting.x for setting in content.settings if setting.x is not None]
    if len({*places}) < len(places):
        raise InputError(f"{name}: two settings have the same x")
    for place, asked in _asked(content):
        try:
            asked.check(own_of(experiment.own))
            for name_of_group in chain.from_iterable(map(groups_of, asked.terms)):
                experiment.group(name_of_group)
        except UseError as error:
            raise InputError(f"{name}: {place}: {error}") from error


def _asked(content: Content) -> Iterator[tuple[str, Claim | Drawing]]:
    kinds: tuple[tuple[str, Sequence[Claim | Drawing]], ...] = (
        ("published", content.published),
        ("figures", content.figures),
    )
    for key, items in kinds:
        for number, item in enumerate(items, 1):
            yield f"{key} {number}", item
