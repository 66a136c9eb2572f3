"""Groups of replicates, and what distinguishes groups.

A run's traits are its protocol, source, name, seed and parameters, and the pattern that selected
it. A nested parameter has a name such as 'churn.rate'. What follows from parameters and seed, such
as the salt of a ring's ids, is no trait, because it differs between replicates; the parameter
`described` lists its names.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vizpub.model.errors import UnknownName, UseError
from vizpub.model.run import RunFacts

NO_INTERVAL = "no confidence interval for a single run"

_Traits = dict[str, str]

PATTERN = "pattern"
"""The trait of runs that one pattern selects, such as 'before-*'."""
_FACTS = ("protocol", "source", "run", "seed", PATTERN)
_BARE = ("protocol", "source", "run", PATTERN)
"""Traits whose values are shown without their name."""


@dataclass(frozen=True)
class Grouping:
    """The group of every run, and notes on the groups."""

    groups: tuple[str, ...]
    settings: tuple[str, ...]
    """Each run's value of the trait to compare over; empty without one."""
    notes: tuple[str, ...]


def group_runs(
    runs: Sequence[RunFacts],
    by: Sequence[str] | None = None,
    over: str | None = None,
    more_traits: Sequence[Mapping[str, str]] = (),
) -> Grouping:
    """Group runs by the given traits, by default by protocol and by the parameters that differ
    within a protocol. By default, runs that are not distinguished by a seed are a group each.

    `over` is a trait that does not distinguish groups: they are compared at each of its values.
    `more_traits` has further traits of each, such as the pattern that selected it.

    Raises: UnknownName for a trait that no run has, UseError if a run lacks the trait `over`.
    """
    more_traits = more_traits or [{} for _ in runs]
    traits = [{**find_traits(facts), **more} for facts, more in zip(runs, more_traits, strict=True)]
    names = sorted({trait for run_traits in traits for trait in run_traits})
    for name in by or ():
        if name not in names:
            raise UnknownName("property of these runs", name, names)
    chosen = ("protocol", *_differing_parameters(traits)) if by is None else tuple(by)
    chosen = tuple(name for name in chosen if name != over)
    settings = tuple(_setting_of(run_traits, over, names) for run_traits in traits)
    cells = [
        (_label(run_traits, chosen), setting)
        for run_traits, setting in zip(traits, settings, strict=True)
    ]
    ungrouped = _unseeded_runs(traits, cells) if by is None else set[str]()
    groups = tuple(
        _label(run_traits, (*chosen, "run")) if run_traits["run"] in ungrouped else label
        for run_traits, (label, _) in zip(traits, cells, strict=True)
    )
    members: dict[str, list[_Traits]] = defaultdict(list)
    for label, setting, run_traits in zip(groups, settings, traits, strict=True):
        members[f"{label} {over}={setting}" if over else label].append(run_traits)
    return Grouping(groups, settings, (*_find_notes(members, ungrouped, (*chosen, over)),))


def _unseeded_runs(traits: Sequence[_Traits], cells: Sequence[tuple[str, str]]) -> set[str]:
    """Runs without a seed of their own in their group, so they may not be independent."""
    seeded_cells = [
        (cell, run_traits.get("seed")) for run_traits, cell in zip(traits, cells, strict=True)
    ]
    sizes, runs_per_seed = Counter(cells), Counter(seeded_cells)
    return {
        run_traits["run"]
        for run_traits, (cell, seed) in zip(traits, seeded_cells, strict=True)
        if sizes[cell] > 1 and (seed is None or runs_per_seed[cell, seed] > 1)
    }


def _setting_of(run_traits: _Traits, over: str | None, names: Sequence[str]) -> str:
    if over is None:
        return ""
    if over not in names:
        raise UnknownName("property to compare over", over, [*names, "intervals", "runs"])
    if over not in run_traits:
        raise UseError(f"run '{run_traits['run']}' has no {over} to compare over")
    return run_traits[over]


def find_traits(facts: RunFacts) -> dict[str, str]:
    """Return the traits of a run, by name."""
    described = facts.parameters.get("described")
    derived = [*described, "described"] if isinstance(described, list) else []
    parameters = {name: value for name, value in facts.parameters.items() if name not in derived}
    traits = {name: value for name, value in _flatten(parameters) if name not in _FACTS}
    traits |= {
        "protocol": facts.protocol or facts.source,
        "source": facts.source,
        "run": facts.name,
    }
    seed = facts.parameters.get("seed") if facts.seed is None else facts.seed
    return traits if seed is None else traits | {"seed": str(seed)}


def _flatten(parameters: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{above}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{above}{name}", text


def _differing_parameters(traits: Sequence[_Traits]) -> list[str]:
    """Parameters in which runs of one protocol differ; each system has its own parameters."""
    by_protocol: dict[str, list[_Traits]] = defaultdict(list)
    for run_traits in traits:
        by_protocol[run_traits["protocol"]].append(run_traits)
    return list(
        dict.fromkeys(name for runs in by_protocol.values() for name in _varying_parameters(runs))
    )


def _varying_parameters(runs: Sequence[_Traits]) -> list[str]:
    names = dict.fromkeys(name for traits in runs for name in traits if name not in _FACTS)
    return [name for name in names if len({run_traits.get(name) for run_traits in runs}) > 1]


def _label(run_traits: _Traits, names: Sequence[str]) -> str:
    parts = [
        run_traits[name] if name in _BARE else f"{name}={run_traits[name]}"
        for name in names
        if name in run_traits
    ]
    return " ".join(parts) or "others"


def _find_notes(
    members: Mapping[str, Sequence[_Traits]], alone: Collection[str], chosen: Sequence[str | None]
) -> Iterator[str]:
    """Yield notes on groups: runs that are `alone` in one, single runs, seeds that occur twice or
    not at all, and traits that differ within a group, or between groups without defining them.
    """
    if alone:
        yield (
            f"{', '.join(sorted(alone))}: a group each, as their seeds do not differ and "
            "nothing marks them as replicates; --by protocol groups them"
        )
    if single := [label for label, runs in members.items() if len(runs) == 1]:
        yield f"{NO_INTERVAL}: {', '.join(single)}"
    for label, runs in members.items():
        seeds = Counter(run_traits["seed"] for run_traits in runs if "seed" in run_traits)
        if repeated := [seed for seed, count in seeds.items() if count > 1]:
            yield (
                f"{label}: several runs have seed {', '.join(repeated)}; runs that are not "
                "independent make the interval too narrow"
            )
        unseeded = [run_traits["run"] for run_traits in runs if "seed" not in run_traits]
        if len(runs) > 1 and unseeded:
            yield (
                f"{label}: {', '.join(unseeded)} have no seed; if they are not independent, the "
                "interval is too narrow"
            )
    within_groups = {label: _varying_parameters(runs) for label, runs in members.items()}
    for label, names in within_groups.items():
        if names:
            yield f"{label}: combines runs that differ in {', '.join(names)}"
    every_run = [run_traits for runs in members.values() for run_traits in runs]
    left_out = {*chosen}.union(*within_groups.values())
    for name in _varying_parameters(every_run):
        if name not in left_out and all(name in run_traits for run_traits in every_run):
            values = ", ".join(f"{label}: {runs[0][name]}" for label, runs in members.items())
            yield f"the groups also differ in {name} ({values})"
