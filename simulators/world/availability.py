"""Availability traces: sessions of the nodes of a real system.

The format `.avt` of Godfrey's Repository of Availability Traces, a line per node:

    nodeid  nsessions  start end start end …

in seconds, ascending; a node is up at t where start ≤ t < end.
"""

from __future__ import annotations

import re
from itertools import pairwise

from vizpub.model.errors import InputError
from vizpub.model.wording import amount
from vizpub.simulators.engine.files import is_whole_number, lines, not_understood

NOT_ASCENDING = "the times do not ascend"
NO_NODE_UP = "no node in it is up at any time"
NO_NUMBER = "a time is not a number"
LINE = "a line is: node"

Stays = list[tuple[int, int]]
"""[start, end) of a node's sessions, in µs of the trace."""

_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]+)?")


def read_availability(name: str) -> list[Stays]:
    """The sessions of all nodes in the order of the file.

    Raises: InputError if the file cannot be read, naming the line.
    """
    nodes = [_parse_stays(name, number, text.split()) for number, text in lines(name)]
    if not any(nodes):
        raise InputError(f"{name}: {NO_NODE_UP}")
    return nodes


def _parse_stays(name: str, line: int, words: list[str]) -> Stays:
    if len(words) < 2 or not is_whole_number(words[1]):
        raise not_understood(name, line, f"{LINE}, number of sessions, start end start end …")
    if not all(_SECONDS.fullmatch(word) for word in words[2:]):
        raise not_understood(name, line, f"{NO_NUMBER} of seconds")
    times = [round(float(word) * 1e6) for word in words[2:]]
    if len(times) != 2 * int(words[1]):
        raise not_understood(
            name, line, f"{amount(int(words[1]), 'session')}, but {amount(len(times), 'time')}"
        )
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise not_understood(name, line, NOT_ASCENDING)
    return list(zip(times[::2], times[1::2], strict=True))
