"""The tree of errors: what each carries, says and becomes on the command line."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from vizpub.model import errors
from vizpub.model.errors import InputsDiffer, UnknownName, UseError, VizpubError, cause_of
from vizpub.model.naming import place_of


def tree(root: type[VizpubError] = VizpubError) -> Iterator[type[VizpubError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


KINDS = sorted(tree(), key=lambda kind: kind.__name__)
OURS = [kind for kind in KINDS if kind.__module__ == errors.__name__]


def facts_of(kind: type[VizpubError]) -> list[Any]:
    """A value for each field, of its type, that can be found again in a message."""
    if not is_dataclass(kind):
        return ["what went wrong"]
    return [
        ["first of " + field.name, "second of " + field.name]
        if "Sequence" in str(field.type)
        else f"the {field.name}"
        for field in fields(kind)
    ]


def drawn_tree() -> dict[str, tuple[str, int]]:
    """class → (the class above it, exit code), from the picture in the module's docstring."""
    drawn: dict[str, tuple[str, int]] = {}
    above: list[tuple[int, str, int]] = []
    for line in str(errors.__doc__).splitlines():
        if found := re.match(r"([ │├└─]*)([A-Z]\w+)\b(?:.*exit (\d))?", line):
            depth, name = len(found[1]), found[2]
            if not name.endswith("Error") and not above:
                continue
            above = [entry for entry in above if entry[0] < depth]
            code = int(found[3]) if found[3] else above[-1][2]
            drawn[name] = (above[-1][1] if above else "Exception", code)
            above.append((depth, name, code))
        elif above and not line.strip():
            break
    return drawn


def test_error_tree_equals_the_drawing_in_the_docstring() -> None:
    real = {kind.__name__: (kind.__mro__[1].__name__, kind.exit_code) for kind in OURS}
    assert drawn_tree() == real


@pytest.mark.parametrize("kind", KINDS)
def test_error_facts_survive_pickling(kind: type[VizpubError]) -> None:
    facts = facts_of(kind)
    error = kind(*facts)
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error)
    if is_dataclass(kind):
        assert [getattr(back, field.name) for field in fields(kind)] == facts


@pytest.mark.parametrize("kind", [kind for kind in OURS if is_dataclass(kind)])
def test_error_facts_given_by_name_survive_pickling(kind: Any) -> None:
    named = dict(zip((field.name for field in fields(kind)), facts_of(kind), strict=True))
    back = pickle.loads(pickle.dumps(kind(**named)))
    assert {name: getattr(back, name) for name in named} == named


@pytest.mark.parametrize("kind", OURS)
def test_error_message_tells_every_fact(kind: type[VizpubError]) -> None:
    text = str(kind(*facts_of(kind)))
    for fact in facts_of(kind):
        for part in [fact] if isinstance(fact, str) else fact:
            assert part in text


def test_unknown_name_error_suggests_the_nearest() -> None:
    error = UnknownName("run", "mondy", ["tuesday", "monday"], "vizpub runs list")
    assert str(error) == "no run 'mondy'; did you mean monday? (see: vizpub runs list)"


def test_unknown_peer_error_shows_the_nearest_in_forms_that_mean_them() -> None:
    peers = [
        f"12D3KooW{middle}{i:030}" for i, middle in enumerate(("Kabc", "Kabd", "Qxyz", "Zuvw"))
    ]
    text = str(UnknownName("peer", "12D3KooWKabe", peers, "vizpub sql r 'FROM peers'"))
    shown = re.findall(r"12D3…\w+", text)
    assert len(shown) == 3
    assert [place_of("peer", form, peers) for form in shown][:2] in ([0, 1], [1, 0])
    assert text.endswith("(see: vizpub sql r 'FROM peers')")
    column = "a_column_with_a_name_longer_than_ids"
    assert column in str(UnknownName("column", column[:-1], [column]))


def test_unknown_name_error_without_a_near_name_lists_some() -> None:
    many = [f"r{i}" for i in range(20)]
    assert (
        str(UnknownName("run", "zzzzz", many))
        == f"no run 'zzzzz'; there are: {', '.join(many[:8])}, … and 12 more"
    )
    assert str(UnknownName("run", "zzzzz", many[:8])).endswith(", r6, r7")
    assert str(UnknownName("run", "zzzzz", many[:9])).endswith(", r7, r8")  # not "and 1 more"
    assert str(UnknownName("run", "zzzzz")) == "no run 'zzzzz'"


def test_cause_of_an_error_repeats_neither_its_number_nor_the_path() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        Path("/nowhere/at/all").read_bytes()
    assert cause_of(caught.value) == "No such file or directory"
    assert cause_of(ValueError("line 3 is no number")) == "line 3 is no number"


def test_inputs_differ_error_names_the_replace_option() -> None:
    assert "--replace" in str(InputsDiffer("monday", ["1 file new or changed, 0 gone"]))


def test_use_error_is_a_vizpub_error() -> None:
    with pytest.raises(VizpubError, match=r"^as it was asked$"):
        raise UseError("as it was asked")
