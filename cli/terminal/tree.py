"""The dissemination of a message as a tree of text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class Reception(NamedTuple):
    """One arrival, as the query dissemination-tree gives it."""

    hop: int | None
    time_us: int | None
    from_: str | None
    to: str
    first: bool
    subscribed: bool | None


def drawn(receptions: Sequence[Reception], *, counts: bool = True) -> Iterator[tuple[Any, ...]]:
    """(peer under the one it had the message from, hop, time_us, duplicates, subscribed).
    `counts` = all arrivals are told, not the first ones alone; else `duplicates` is null.

    Rows come from the root down. Peers whose chain does not lead to the publisher (an
    unknown or a circular previous hop) stand at the left.
    """
    first = {r.to: r for r in receptions if r.first}
    duplicates = Counter(r.to for r in receptions if not r.first)
    below: dict[str | None, list[str]] = defaultdict(list)
    for reception in first.values():
        below[reception.from_].append(reception.to)
    roots = [peer for peer in below if peer is not None and peer not in first]
    seen: set[str] = set()
    for root in [*roots, *below[None], *first]:
        for peer, branch in _walk(root, below, seen):
            at = first.get(peer)
            facts = (at.hop, at.time_us) if at else (0, None)
            copies = duplicates[peer] if counts else None
            yield branch + peer, *facts, copies, at.subscribed if at else None


def _walk(
    root: str, below: dict[str | None, list[str]], seen: set[str]
) -> Iterator[tuple[str, str]]:
    """A peer and the branch drawn before it, depth first; what was seen before is left out."""
    stack = [(root, "", "")]
    while stack:
        peer, branch, stem = stack.pop()
        if peer in seen:
            continue
        seen.add(peer)
        yield peer, branch
        children = [child for child in below.get(peer, ()) if child not in seen]
        for place, child in enumerate(reversed(children)):
            last = place == 0
            stack.append(
                (child, stem + ("└─ " if last else "├─ "), stem + ("   " if last else "│  "))
            )
