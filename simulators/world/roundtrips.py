"""Matrices of measured round trips.

Two formats, recognised by their content:

- a matrix: a line for each site, its times to all sites in the same order, separated by blanks;
- a topology of p2psim, as the King data set is published and PeerSim and PeerNet read it:
  `node N` for each site (from 1), then lines `i,j time` for pairs; lines before the first
  node are ignored.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import chain, dropwhile

import numpy as np
from numpy.typing import NDArray

from vizpub.model.errors import InputError
from vizpub.model.wording import amount
from vizpub.simulators.engine.files import is_whole_number, lines, not_understood

NEITHER = "is neither a matrix of numbers nor a list of pairs"

_Times = NDArray[np.float64]
"""[site, site] in the unit of the file; nan = not measured. The diagonal has no meaning."""


def read_matrix(name: str) -> _Times:
    """The times of a file in either format. Negative times are missing ones.

    Raises: InputError if the file cannot be read or has neither format, naming the line.
    """
    numbered = lines(name)
    first = next(numbered, None)
    if first is None:
        raise InputError(f"{name}: it is empty")
    parse_file = _king if first[1][0].isalpha() else _square
    times = parse_file(name, chain([first], numbered))
    times[~(np.isfinite(times) & (times >= 0))] = np.nan
    return times


def symmetric(times: _Times, name: str, is_mean_meant: bool) -> _Times:
    """The times; with `is_mean_meant` the mean of both directions where they differ.

    Raises: InputError if they differ otherwise.
    """
    differ = np.argwhere(~np.isclose(times, times.T, rtol=1e-6, equal_nan=True))
    between = differ[differ[:, 0] < differ[:, 1]]
    if not len(between) or is_mean_meant:
        return (times + times.T) / 2
    one, other = between[0]
    raise InputError(
        f"{name}: {times[one, other]:g} from site {one + 1} to {other + 1}, but "
        f"{times[other, one]:g} back, and {len(between)} such pairs in total",
        "use the mean of both with asymmetric=mean",
    )


def incomplete(times: _Times, name: str) -> InputError:
    """The error that names the missing times."""
    holes = np.argwhere(np.isnan(times) & ~np.eye(len(times), dtype=bool))
    one, other = holes[0]
    return InputError(
        f"{name}: no time from site {one + 1} to {other + 1}, and {len(holes)} such gaps in total",
        "set a time for them, for example missing=100ms",
    )


def _square(name: str, numbered: Iterable[tuple[int, str]]) -> _Times:
    rows: list[list[float]] = []
    for line, text in numbered:
        row = [_number(name, line, word) for word in text.replace(",", " ").split()]
        if rows and len(row) != len(rows[0]):
            raise not_understood(
                name, line, f"{amount(len(row), 'time')}, but {len(rows[0])} before"
            )
        rows.append(row)
    if len(rows) != len(rows[0]):
        raise InputError(
            f"{name}: the table is not square: {amount(len(rows), 'line')} of "
            f"{amount(len(rows[0]), 'time')}"
        )
    return np.array(rows)


def _king(name: str, numbered: Iterable[tuple[int, str]]) -> _Times:
    after_head = dropwhile(lambda numbered: not numbered[1].startswith("node"), numbered)
    sites, ones, others, delays = 0, array("l"), array("l"), array("d")
    for line, text in after_head:
        if text.startswith("node"):
            sites += 1
            continue
        one, other, time = _pair(name, line, text, sites)
        ones.append(one - 1)
        others.append(other - 1)
        delays.append(time)
    if not delays:
        raise InputError(f"{name}: {NEITHER}")
    times = np.full((sites, sites), np.nan)
    times[ones, others] = delays
    is_way_back = np.isnan(times)
    times[is_way_back] = times.T[is_way_back]
    return times


def _pair(name: str, line: int, text: str, sites: int) -> tuple[int, int, float]:
    words = text.replace(",", " ").split()
    if len(words) != 3 or not (is_whole_number(words[0]) and is_whole_number(words[1])):
        raise not_understood(name, line, f"'{text[:40]}' is not a pair and its time such as 1,2 34")
    one, other = int(words[0]), int(words[1])
    if not (1 <= one <= sites and 1 <= other <= sites):
        raise not_understood(name, line, f"there are only the nodes 1 to {sites}")
    return one, other, _number(name, line, words[2])


def _number(name: str, line: int, word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise not_understood(name, line, f"'{word[:40]}' is not a number") from error
