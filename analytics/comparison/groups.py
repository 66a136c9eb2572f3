"""Groups of replicates, and what distinguishes groups.

A run's traits are its protocol, source, name, seed and parameters. A nested parameter has a name
such as 'churn.rate'. What follows from parameters and seed, such as the salt of a ring's ids, is no
trait, because it differs between replicates; the parameter `described` lists its names.
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

_FACTS = ("protocol", "source", "run", "seed")
_BARE = ("protocol", "source", "run")
"""Traits whose values are shown without their name."""


@dataclass(frozen=True)
class Grouping:
    """The group of every run, and notes on the groups."""

    groups: tuple[str, ...]
    settings: tuple[str, ...]
    """Each run's value of the trait to compare over; empty without one."""
    notes: tuple[str, ...]


def grouped(
    runs: Sequence[RunFacts], by: Sequence[str] | None = None, over: str | None = None
) -> Grouping:
    """Group runs by the given traits, by default by protocol and by the parameters that differ
    within a protocol. By default, runs that are not distinguished by a seed are a group each.

    `over` is a trait that does not distinguish groups: they are compared at each of its values.

    Raises: UnknownName for a trait that no run has, UseError if a run lacks the trait `over`.
    """
    traits = [_traits(facts) for facts in runs]
    known = sorted({trait for of in traits for trait in of})
    for name in by or ():
        if name not in known:
            raise UnknownName("property of these runs", name, known)
    chosen = ("protocol", *_differing(traits)) if by is None else tuple(by)
    chosen = tuple(name for name in chosen if name != over)
    settings = tuple(_setting(of, over, known) for of in traits)
    alike = [(_label(of, chosen), setting) for of, setting in zip(traits, settings, strict=True)]
    alone = _no_replicates(traits, alike) if by is None else set[str]()
    groups = tuple(
        _label(of, (*chosen, "run")) if of["run"] in alone else label
        for of, (label, _) in zip(traits, alike, strict=True)
    )
    members: dict[str, list[_Traits]] = defaultdict(list)
    for label, setting, of in zip(groups, settings, traits, strict=True):
        members[f"{label} {over}={setting}" if over else label].append(of)
    notes = (
        *_alone_notes(alone),
        *_single_notes(members),
        *_seed_notes(members),
        *_mixed_notes(members),
        *_confounded_notes(members, (*chosen, over)),
    )
    return Grouping(groups, settings, notes)


def _no_replicates(traits: Sequence[_Traits], alike: Sequence[tuple[str, str]]) -> set[str]:
    """Runs without a seed of their own in their group, so they may not be independent."""
    cells = [(cell, of.get("seed")) for of, cell in zip(traits, alike, strict=True)]
    sizes, same = Counter(alike), Counter(cells)
    return {
        of["run"]
        for of, (cell, seed) in zip(traits, cells, strict=True)
        if sizes[cell] > 1 and (seed is None or same[cell, seed] > 1)
    }


def _setting(of: _Traits, over: str | None, known: Sequence[str]) -> str:
    if over is None:
        return ""
    if over not in known:
        raise UnknownName("property to compare over", over, [*known, "intervals", "runs"])
    if over not in of:
        raise UseError(f"run '{of['run']}' has no {over} to compare over")
    return of[over]


def _traits(facts: RunFacts) -> _Traits:
    described = facts.parameters.get("described")
    made = [*described, "described"] if isinstance(described, list) else []
    given = {name: value for name, value in facts.parameters.items() if name not in made}
    own = {name: value for name, value in _flat(given) if name not in _FACTS}
    own |= {"protocol": facts.protocol or facts.source, "source": facts.source, "run": facts.name}
    seed = facts.parameters.get("seed") if facts.seed is None else facts.seed
    return own if seed is None else own | {"seed": str(seed)}


def _flat(parameters: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{above}{name}", text


def _parameters(of: _Traits) -> dict[str, str]:
    return {name: value for name, value in of.items() if name not in _FACTS}


def _differing(traits: Sequence[_Traits]) -> list[str]:
    """Parameters in which runs of one protocol differ; each system has its own parameters."""
    by_protocol: dict[str, list[_Traits]] = defaultdict(list)
    for of in traits:
        by_protocol[of["protocol"]].append(of)
    return list(dict.fromkeys(name for runs in by_protocol.values() for name in _varying(runs)))


def _varying(runs: Sequence[_Traits]) -> list[str]:
    every = dict.fromkeys(name for of in runs for name in _parameters(of))
    return [name for name in every if len({of.get(name) for of in runs}) > 1]


def _label(of: _Traits, chosen: Sequence[str]) -> str:
    parts = [of[name] if name in _BARE else f"{name}={of[name]}" for name in chosen if name in of]
    return " ".join(parts) or "others"


def _alone_notes(alone: Collection[str]) -> Iterator[str]:
    if alone:
        yield (
            f"{', '.join(sorted(alone))}: a group each, as their seeds do not differ and "
            "nothing marks them as replicates; --by protocol groups them"
        )


def _single_notes(members: Mapping[str, Sequence[_Traits]]) -> Iterator[str]:
    if single := [label for label, runs in members.items() if len(runs) == 1]:
        yield f"{NO_INTERVAL}: {', '.join(single)}"


def _seed_notes(members: Mapping[str, Sequence[_Traits]]) -> Iterator[str]:
    for label, runs in members.items():
        seeds = Counter(of["seed"] for of in runs if "seed" in of)
        if again := [seed for seed, count in seeds.items() if count > 1]:
            yield (
                f"{label}: several runs have seed {', '.join(again)}; runs that are not "
                "independent make the interval too narrow"
            )
        if len(runs) > 1 and (without := [of["run"] for of in runs if "seed" not in of]):
            yield (
                f"{label}: {', '.join(without)} have no seed; if they are not independent, the "
                "interval is too narrow"
            )


def _mixed_notes(members: Mapping[str, Sequence[_Traits]]) -> Iterator[str]:
    for label, runs in members.items():
        if different := _varying(runs):
            yield f"{label}: combines runs that differ in {', '.join(different)}"


def _confounded_notes(
    members: Mapping[str, Sequence[_Traits]], chosen: Sequence[str | None]
) -> Iterator[str]:
    """Traits that are fixed in each group and differ between groups, but do not define them."""
    runs = [of for group in members.values() for of in group]
    shared = [name for name in _varying(runs) if all(name in of for of in runs)]
    inside = {name for group in members.values() for name in _varying(group)}
    for name in shared:
        if name not in chosen and name not in inside:
            values = ", ".join(f"{label}: {group[0][name]}" for label, group in members.items())
            yield f"the groups also differ in {name} ({values})"
