"""One syntax for what is chosen by name, and help where it was not met."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from msgspec import Meta

from vizpub.model.errors import UseError
from vizpub.simulators.engine.parameters import Duration, Positive, PositiveReal, Share
from vizpub.simulators.engine.specs import describe, example, parse
from vizpub.simulators.world.churn import CHURNS
from vizpub.simulators.world.client import ALL_WORKLOADS
from vizpub.simulators.world.interest import INTERESTS
from vizpub.simulators.world.latency import LATENCIES
from vizpub.simulators.world.publications import PUBLICATIONS

ALL: list[Any] = [LATENCIES, CHURNS, ALL_WORKLOADS, PUBLICATIONS, INTERESTS]


@dataclass(frozen=True)
class Tea:
    """A drink
    of leaves.
    """

    leaf: Annotated[str, Meta(description="What it is made of.")]
    minutes: Annotated[Positive, Meta(description="How long.")] = 3
    milk: Annotated[Share, Meta(description="How much of it is milk.")] = 0.1
    how: Annotated[Literal["hot", "cold"], Meta(description="Served.")] = "hot"
    rest: Annotated[Duration, Meta(description="Before.")] = "1s"
    from_: Annotated[Positive | None, Meta(description="Year.")] = None
    litres: Annotated[PositiveReal, Meta(description="In the pot.")] = 1.5
    sweet: Annotated[bool, Meta(description="With sugar.")] = False
    example: ClassVar[str] = "tea:assam,minutes=4"


@dataclass(frozen=True)
class Water:
    """Nothing else."""

    example: ClassVar[str] = "water"


KINDS: dict[str, type[Any]] = {"tea": Tea, "water": Water}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("water", Water()),
        ("tea:assam", Tea("assam")),
        (" tea:assam , minutes = 4 ", Tea("assam", 4)),
        ("tea,leaf=assam", Tea("assam")),
        ("tea:leaf=assam,minutes=4,milk=0,how=cold,rest=5m", Tea("assam", 4, 0, "cold", "5m")),
        ("tea:assam,from=1990,sweet=true", Tea("assam", from_=1990, sweet=True)),
        ("tea:assam,from=none", Tea("assam")),
        ("tea:./a=b", Tea("./a=b")),
        ("tea:leaf=a=b:c", Tea("a=b:c")),
    ],
)
def test_spec_is_parsed_to_the_meant_value(text: str, meant: object) -> None:
    assert parse(text, KINDS, "drink") == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("te:assam", "no drink 'te'; did you mean tea"),
        ("", "no drink ''; there are: tea, water"),
        ("tea", "drink 'tea' needs leaf; write for example tea:assam,minutes=4"),
        ("tea:assam,minute=4", "drink 'tea' has no 'minute'; did you mean minutes?"),
        (
            "tea:assam,xyz=4",
            "has no 'xyz'; there are: leaf, minutes, milk, how, rest, from, litres, sweet",
        ),
        ("tea:assam,minutes=0", "minutes is a whole number of at least 1, not '0'"),
        ("tea:assam,minutes=long", "minutes is a whole number of at least 1, not 'long'"),
        ("tea:assam,milk=1.5", "milk is a number from 0 to 1, not '1.5'"),
        ("tea:assam,milk=nan", "milk is a number from 0 to 1, not 'nan'"),
        (
            "tea:assam,minutes=1e300",
            "minutes is a whole number of at least 1 and at most 1,000,000,000, not '1e300'",
        ),
        (
            "tea:assam,litres=1e300",
            "litres is a number above 0 and at most 1,000,000,000, not '1e300'",
        ),
        ("tea:assam,litres=0", "litres is a number above 0, not '0'"),
        ("tea:assam,how=warm", "how is cold or hot, not 'warm'"),
        ("tea:assam,rest=5", "rest is a duration such as 50ms or 1.5s, not '5'"),
        ("tea:assam,rest=0s", "drink 'tea': rest: '0s' is shorter than a microsecond"),
        ("tea:assam,from=x", "from is a whole number of at least 1 or none, not 'x'"),
        ("tea:assam,sweet=very", "sweet is true or false, not 'very'"),
        ("tea:assam,leaf=ceylon", "'leaf' is given twice"),
        ("tea:assam,hot", "'hot' is not key=value; write for example tea:assam,minutes=4"),
        ("water:cold", "drink 'water' takes no value, so not 'cold'"),
        ("water:how=cold", "drink 'water' has no 'how'; it takes no value"),
    ],
)
def test_invalid_spec_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(UseError) as error:
        parse(text, KINDS, "drink")
    assert said in str(error.value)


def test_help_describes_fields_with_type_and_default() -> None:
    assert describe(KINDS)[:5] == [
        "tea: A drink of leaves.",
        "  such as tea:assam,minutes=4",
        "  leaf: What it is made of. (text; required)",
        "  minutes: How long. (a whole number of at least 1; default: 3)",
        "  milk: How much of it is milk. (a number from 0 to 1; default: 0.1)",
    ]
    assert "  litres: In the pot. (a number above 0; default: 1.5)" in describe(KINDS)
    assert "  from: Year. (a whole number of at least 1 or none; default: none)" in describe(KINDS)


@pytest.mark.parametrize("kinds", ALL)
def test_kinds_are_described_and_have_valid_examples(kinds: dict[str, type[Any]]) -> None:
    for name, kind in kinds.items():
        assert isinstance(parse(example(kind), kinds, "kind"), kind)
        assert example(kind).split(":")[0] == name
    assert all(len(line) < 140 for line in describe(kinds))
    assert not any(": (" in line for line in describe(kinds)), "something is not described"


@pytest.mark.parametrize("kinds", ALL)
def test_workloads_page_shows_every_kind_and_its_example(kinds: dict[str, type[Any]]) -> None:
    page = (Path(__file__).parents[4] / "docs/workloads.md").read_text("utf-8")
    assert "\n".join(["```text", *describe(kinds), "```"]) in page
    for name, kind in kinds.items():
        runnable = [line for line in page.splitlines() if line.startswith("vizpub lab simulate")]
        assert any(example(kind) in line for line in runnable), name
