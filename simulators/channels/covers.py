"""Which channels carry a page, so that every client that wants it hears it (chapter 5).

The covers of `random`, `c` and `cd` are drawn by a compiled function: the same draws give the same
covers.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Bools, Int64s
from vizpub.model.errors import UseError
from vizpub.simulators.protocols.poldercast.views import below

RULES = {"random": 0, "c": 1, "cd": 2}
_CD = RULES["cd"]
SECONDS = 60.0
"""For the smallest cover of one page."""


@compiled("int64(int64, int64[::1], int64[::1], int64[::1])")
def _best(rule: int, uncovered: Int64s, waiting: Int64s, draws: Int64s) -> int:
    """The channel with the most uncovered clients; of tied ones a random one, with `cd` among
    those with the fewest pages waiting.
    """
    best, ties = 0, 1
    for channel in range(1, len(uncovered)):
        ahead = uncovered[channel] - uncovered[best]
        if rule == _CD and ahead == 0:
            ahead = waiting[best] - waiting[channel]
        if ahead > 0:
            best, ties = channel, 1
        elif ahead == 0:
            ties += 1
            if below(draws, ties) == 0:
                best = channel
    return best


@compiled("int64(int64, int64[::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def cover(  # noqa: PLR0913, PLR0917
    rule: int,
    clients: Int64s,
    channels_of: Int64s,
    reach: Int64s,
    waiting: Int64s,
    draws: Int64s,
    chosen: Int64s,
) -> int:
    """Choose channels until all `clients` of a page are covered; returns how many were `chosen`.

    `channels_of` is int64[clients, listen], `reach` the number of these clients on each channel,
    `waiting` the pages in each channel.
    """
    uncovered, tried, remaining = reach.copy(), np.arange(len(reach)), clients.copy()
    count, last, open_ = 0, len(reach), len(remaining)
    while open_ > 0:
        if rule == 0:
            place = below(draws, last)
            channel = tried[place]
            last -= 1
            tried[place] = tried[last]
            if uncovered[channel] == 0:
                continue
        else:
            channel = _best(rule, uncovered, waiting, draws)
        chosen[count] = channel
        count += 1
        uncovered_count = 0
        for place in range(open_):
            client, covered = remaining[place], False
            for column in range(channels_of.shape[1]):
                covered |= channels_of[client, column] == channel
            if covered:
                for column in range(channels_of.shape[1]):
                    uncovered[channels_of[client, column]] -= 1
            else:
                remaining[uncovered_count] = client
                uncovered_count += 1
        open_ = uncovered_count
    return count


def smallest(listens: Bools, seconds: float = SECONDS) -> list[int]:
    """A smallest set of channels that all clients hear; `listens` is bool[clients, channels], and
    each client listens to some channel.

    Raises: UseError where none is proved the smallest within the time: the problem is NP-hard.
    """
    if not len(listens):
        return []
    # Clients on the same channels are one condition.
    rows = np.unique(listens, axis=0).astype(float)
    solution = milp(
        np.ones(rows.shape[1]),
        constraints=LinearConstraint(rows, lb=np.ones(len(rows))),
        integrality=np.ones(rows.shape[1]),
        bounds=Bounds(0, 1),
        options={"time_limit": seconds},
    )
    if not solution.success:
        raise UseError(
            f"perfect-c: no set of {listens.shape[1]} channels was proved the smallest for a page "
            f"of {len(listens)} clients within {seconds:g} s: take offline-c, or fewer channels"
        )
    return np.flatnonzero(solution.x > 0.5).tolist()
