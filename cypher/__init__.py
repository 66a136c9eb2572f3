"""One Cypher statement per file, each starting with its purpose, parameters and columns.

    // The peers linked to a peer at a time.
    // Further lines of the purpose.
    //
    // needs: presence, links
    // partition: $at
    // messages: $at
    //
    // $run run – the run
    // $at tick ticks – the time
    // $peer peer($at) – the peer, which must be present at $at
    // $layers layers? – layers whose links count, null = all
    //
    // -> neighbour: the other peer

What it needs are tables of a run: without one of them its answer would be no answer.
The partition names the times that a query reads, if it starts at a peer or topic: in a partitioned
run it reads links and subscriptions of these times alone (vizpub.graphstore.load.partitions).
Times are named by their parameters: `$before, $after` are two, `$from..$to` is all between two; a
message stands for its tick. What is valid for long may come more than once then.
Its messages are those published up to a time, the message of a parameter, or all: an append may add
to the last ones, and the answer says so.

A parameter is `$name type[?|=default] [unit] – meaning`; `?` lets it be left out (null). `a|b` is
one of these words; the other types are those of vizpub.graphstore.ask.parameters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain

_PARAMETER = re.compile(
    r"// \$(?P<name>\w+) (?P<type>[\w<>|-]+)(?:\(\$(?P<at>\w+)\))?"
    r"(?P<optional>\?)?(?:=(?P<default>\S+))?(?: (?P<unit>[^–]+?))? – (?P<meaning>.+)"
)
_NEEDS = re.compile(r"// needs: (?P<tables>.+)")
_PARTITION = re.compile(r"// partition: (?P<times>\$\w+(?:(?:, |\.\.)\$\w+)*)")
_MESSAGES = re.compile(r"// messages: (?:\$(?P<upto>\w+)|all)")
_COLUMN = re.compile(r"// -> (?P<name>\w+): (?P<meaning>.+)")


@dataclass(frozen=True)
class Parameter:
    """One `$parameter` of a statement."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    at: str = ""
    """The parameter that this one depends on, mostly the time at which it is looked at."""
    optional: bool = False
    default: str | None = None

    @property
    def words(self) -> list[str]:
        """The words that it may be; empty = any value of its type."""
        return self.type.split("|") if "|" in self.type else []


@dataclass(frozen=True)
class AnswerColumn:
    """One column of a statement's answer."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Statement:
    """A statement with its header taken apart. `text` is the file as it is."""

    folder: str
    name: str
    text: str
    purpose: str
    parameters: tuple[Parameter, ...]
    columns: tuple[AnswerColumn, ...]
    needs: tuple[str, ...] = ()
    """Tables that a run must have, be they empty, for an answer."""
    times: tuple[tuple[str, str], ...] = ()
    """The windows whose partitions it reads, each by the parameters of its first and last time;
    empty = it reads the whole history, or by an index."""
    messages: str | None = None
    """The parameter that says which messages it is about; empty = all, null = none."""


def names(folder: str) -> list[str]:
    """Return the names of the statements in a folder (schema, load, queries, …), sorted."""
    entries = (files(__name__) / folder).iterdir()
    return sorted(e.name.removesuffix(".cypher") for e in entries if e.name.endswith(".cypher"))


@cache
def statement(folder: str, name: str) -> Statement:
    """Return one statement. Raises: KeyError if there is none of that name."""
    if name not in names(folder):
        raise KeyError(f"{folder}/{name}")
    text = (files(__name__) / folder / f"{name}.cypher").read_text("utf-8")
    return parse_statement(folder, name, text)


def parse_statement(folder: str, name: str, text: str) -> Statement:
    """Parse a statement and its header, which may be empty."""
    header = [line for line in text.splitlines() if line.startswith("//")]
    parameters = [m for line in header if (m := _PARAMETER.fullmatch(line))]
    needs = [m["tables"].split(", ") for line in header if (m := _NEEDS.fullmatch(line))]
    windows = [m["times"].split(", ") for line in header if (m := _PARTITION.fullmatch(line))]
    # `$at` is a window from itself to itself.
    times = [re.findall(r"\w+", window) for window in chain.from_iterable(windows)]
    messages = [m["upto"] or "" for line in header if (m := _MESSAGES.fullmatch(line))]
    columns = [m for line in header if (m := _COLUMN.fullmatch(line))]
    return Statement(
        folder,
        name,
        text,
        _purpose(header),
        tuple(_parameter(match) for match in parameters),
        tuple(AnswerColumn(match["name"], match["meaning"]) for match in columns),
        tuple(chain.from_iterable(needs)),
        tuple((names[0], names[-1]) for names in times),
        next(iter(messages), None),
    )


def _purpose(header: list[str]) -> str:
    """Return the lines before the first empty one, parameter or column."""
    lines = []
    for line in header:
        words = line.removeprefix("//").strip()
        if not words or words.startswith(("$", "->")):
            break
        lines.append(words)
    return " ".join(lines)


def _parameter(match: re.Match[str]) -> Parameter:
    return Parameter(
        name=match["name"],
        type=match["type"],
        meaning=match["meaning"],
        unit=match["unit"] or "",
        at=match["at"] or "",
        optional=bool(match["optional"]) or match["default"] is not None,
        default=match["default"],
    )
