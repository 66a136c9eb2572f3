"""An evaluation: systems in a world, with seeds, and the expected results.

It is a TOML file that `read` reads: which runs are made, which metrics are reported, what is
drawn, and the published values to compare with. At scale `small`, values of the table `small`
replace those outside of it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
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
from vizpub.experiments.groups import (
    OVER,
    ExperimentGroup,
    ExperimentSetting,
    ExperimentSystem,
    Share,
    check_share,
    groups_of,
)
from vizpub.machine.files import text_of
from vizpub.model.errors import InputError, UnknownName, UseError, cause_of
from vizpub.simulators.engine.files import find_file
from vizpub.simulators.engine.plan import Plan, make_plan
from vizpub.simulators.engine.systems import system_named

if TYPE_CHECKING:
    from vizpub.analytics.own import OwnFunction
    from vizpub.model.own import OwnMetric

_SCALES = ("small", "full")
_SUFFIX = ".toml"


class DataFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that is not shipped."""

    file: str
    source: str
    """Where to get it."""


class ExperimentContent(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file, at one scale."""

    title: str
    about: str
    source: str
    world: dict[str, Any]
    systems: tuple[ExperimentSystem, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    own_metrics: tuple[str, ...] = ()
    """Own metrics to measure: FILE.py:NAME, from the folder of the TOML file."""
    settings: tuple[ExperimentSetting, ...] = (ExperimentSetting(),)
    axis: str = ""
    """Meaning of the settings' `x`."""
    window: Share = (0.0, 1.0)
    """The part of the run over which metrics are averaged."""
    data: tuple[DataFile, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the reader of the report."""
    figures: tuple[Drawing, ...] = ()
    published: tuple[Claim, ...] = ()
    expected: tuple[Claim, ...] = ()
    """What nobody published, and we expect."""

    def __post_init__(self) -> None:
        """Raises: ValueError for a window that ends before it begins."""
        check_share(self.window)


@dataclass(frozen=True)
class Experiment:
    """An evaluation at one scale."""

    name: str
    scale: str
    content: ExperimentContent
    own_functions: tuple[OwnFunction, ...] = ()
    """The own metrics with their functions."""

    @cached_property
    def groups(self) -> tuple[ExperimentGroup, ...]:
        """Every system in every setting, but for settings of some systems."""
        return tuple(
            ExperimentGroup(system, setting)
            for setting in self.content.settings
            for system in self.content.systems
            if not setting.systems or system.name in setting.systems
        )

    def group(self, name: str) -> ExperimentGroup:
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

    def plan(self, group: ExperimentGroup, seed: int) -> Plan:
        """The plan of a simulation. Raises: InputError naming the group."""
        parameters = {
            **self.content.world,
            **group.setting.parameters,
            **group.system.parameters,
        }
        system = group.system
        layers = set(system.layers or ())
        if layers and layers <= {*system_named(system.system).make.layers}:
            # Only links of the measured layers are reported.
            parameters = {"links": ",".join(system.layers or ()), **parameters}
        try:
            return make_plan(system.system, parameters, seed)
        except UseError as error:
            raise InputError(f"experiment '{self.name}', {group.name}: {error}") from error

    def check_data(self) -> None:
        """Raises: InputError naming every missing file and where to get it."""
        missing = []
        for data in self.content.data:
            try:
                find_file(data.file)
            except InputError:
                missing.append(data)
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


def shipped_names() -> list[str]:
    """The names of the experiments that come with vizpub."""
    folder = files("vizpub.experiments").iterdir()
    return sorted(item.name.removesuffix(_SUFFIX) for item in folder if item.name.endswith(_SUFFIX))


def experiment_names() -> list[str]:
    """The names of all experiments: those in files, and those that are measured by code."""
    from vizpub.experiments.measured import MEASURED_NAMES

    return sorted([*shipped_names(), *MEASURED_NAMES])


def read_experiment(name: str, scale: str = "full") -> Experiment:
    """The experiment of that name, or of that TOML file.

    Raises: UnknownName for the name or scale; InputError for a file that cannot be read, or for
    invalid content, with its place in the file.
    """
    if scale not in _SCALES:
        raise UnknownName("scale", scale, _SCALES)
    text = _read_text(name)
    try:
        content_data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not TOML: {error}") from error
    smaller = content_data.pop("small", {})
    if scale == "small":
        content_data = merge_tables(content_data, smaller)
    try:
        content = msgspec.convert(content_data, ExperimentContent)
    except msgspec.ValidationError as error:
        raise InputError(f"{name}: {_plain_message(str(error))}") from error
    own_functions = _load_own_metrics(name, content.own_metrics)
    experiment = Experiment(Path(name).name.removesuffix(_SUFFIX), scale, content, own_functions)
    _check_content(name, experiment)
    return experiment


def _load_own_metrics(name: str, references: Sequence[str]) -> tuple[OwnFunction, ...]:
    if not references:
        return ()
    from vizpub.ingest.measures.own import load_own_metrics

    folder = Path(name).parent
    return load_own_metrics(
        str(folder / reference) if ":" in reference else reference for reference in references
    )


def own_metrics_of(own_functions: Sequence[OwnFunction]) -> tuple[OwnMetric, ...]:
    """The own metrics without their functions."""
    return tuple(function.metric for function in own_functions)


def _read_text(name: str) -> str:
    if not name.endswith(_SUFFIX):
        if name not in shipped_names():
            raise UnknownName("experiment", name, experiment_names(), "vizpub lab experiment list")
        return (files("vizpub.experiments") / f"{name}{_SUFFIX}").read_text("utf-8")
    try:
        return text_of(Path(name))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read: {cause_of(error)}") from error


def merge_tables(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Override values of a table; tables in it are merged."""
    result = dict(base)
    for key, value in overrides.items():
        base_value = result.get(key)
        if isinstance(base_value, dict) and isinstance(value, dict):
            result[key] = merge_tables(base_value, value)
        else:
            result[key] = value
    return result


def _plain_message(message: str) -> str:
    """'published 3: there is no `what`' from 'Object missing … - at `$.published[2]`'."""
    text, _, place = message.partition(" - at `$")
    words = {"Object missing required field": "there is no", "Object contains unknown field": "no"}
    for original, replacement in words.items():
        text = text.replace(original, replacement)
    location = re.sub(r"\[(\d+)\]", lambda match: f" {int(match[1]) + 1}", place.rstrip("`"))
    location = location.replace("[...]", " (a value)").lstrip(".").replace(".", ", ")
    return f"{location}: {text}" if location else text


def _check_settings(name: str, content: ExperimentContent) -> None:
    names = {system.name for system in content.systems}
    for setting in content.settings:
        for unknown in sorted({*setting.systems} - names):
            raise InputError(f"{name}: setting {setting.name}: there is no system '{unknown}'")
    places = [setting.x for setting in content.settings if setting.x is not None]
    if len({*places}) < len(places):
        raise InputError(f"{name}: two settings have the same x")


def _check_content(name: str, experiment: Experiment) -> None:
    """Raises: InputError for errors that the types cannot express."""
    content = experiment.content
    if not (content.systems and content.settings and content.seeds and content.metrics):
        raise InputError(f"{name}: give at least one system, setting, seed and metric")
    if len({*content.seeds}) < len(content.seeds):
        raise InputError(f"{name}: a seed occurs twice")
    if ratio := next((group.name for group in experiment.groups if OVER in group.name), None):
        raise InputError(f"{name}: '{ratio}' would be a ratio of groups: leave out the '{OVER}'")
    if len({group.slug for group in experiment.groups}) < len(experiment.groups):
        raise InputError(f"{name}: two groups have the same name")
    _check_settings(name, content)
    items: list[tuple[str, Claim | Drawing]] = [
        *((f"published {n}", claim) for n, claim in enumerate(content.published, 1)),
        *((f"expected {n}", claim) for n, claim in enumerate(content.expected, 1)),
        *((f"figures {n}", drawing) for n, drawing in enumerate(content.figures, 1)),
    ]
    for place, item in items:
        try:
            item.check(own_metrics_of(experiment.own_functions))
            for name_of_group in chain.from_iterable(map(groups_of, item.terms)):
                experiment.group(name_of_group)
            if isinstance(item, Drawing):
                item.check_groups(experiment.groups)
        except UseError as error:
            raise InputError(f"{name}: {place}: {error}") from error
