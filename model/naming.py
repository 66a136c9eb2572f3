"""Names as people give them: in full, or as much of one as tells it from the others.

12D3KooWK33p…qY7vi1jd   as tables shorten it (… or ...)
12D3KooWK33             its beginning, or its end
#3                      its number in the tables
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from vizpub.model.errors import AmbiguousName, UnknownName

GAUGE = r"[A-Za-z0-9_.-]{1,64}"
"""The name of a number that peers report of their own."""
_NUMBER = re.compile(r"#(\d{1,18})", re.ASCII)
_LEAST = 4
"""Characters of a shortened name at least."""
_CUT = re.compile(r"…|\.\.\.")


def number_of(given: str) -> int | None:
    """The number that `#3` means; null for anything else."""
    found = _NUMBER.fullmatch(given)
    return int(found[1]) if found else None


def ends_of(given: str) -> list[tuple[str, str]]:
    """Return how a shortened name may begin and end; the first of a pair is the beginning."""
    start, *end = _CUT.split(given, maxsplit=1)
    return [(start, end[0])] if end else [(given, ""), ("", given)]


def captions(names: Sequence[str], longest: int = 12) -> list[str]:
    """The names, each in at most `longest` characters: long ones by their ends, else by their
    beginnings, of the least length that tells them from all others; else by some of both.

    ["12D3KooWAlpha", "12D3KooWBeta1", "news"] → ["…lpha", "…eta1", "news"]
    """
    long = {name for name in names if len(name) > longest}
    for kept in range(min(_LEAST, longest - 1), longest):
        for part, form in ((slice(-kept, None), "…{}"), (slice(kept), "{}…")):
            held = Counter(name[part] for name in names)
            if all(held[name[part]] == 1 for name in long):
                return [form.format(name[part]) if name in long else name for name in names]
    head = longest // 3
    tail = longest - head - 1
    return [f"{name[:head]}…{name[-tail:]}" if name in long else name for name in names]


def beginnings(names: Sequence[str], longest: int = 24) -> list[str]:
    """The names, long ones as the least beginning, of 12 characters or more, that means one."""
    if not names:
        return []
    ordered = sorted(names)
    alike = [_common(one, other) for one, other in pairwise(ordered)]
    known = dict(zip(ordered, map(max, [0, *alike], [*alike, 0]), strict=True))
    forms = [name[: max(known[name] + 1, 12)] if len(name) > longest else name for name in names]
    sizes = {len(form) for form in forms}
    ends = {name[-size:] for size in sizes for name in names if len(name) > size}
    return [name if form in ends else form for name, form in zip(names, forms, strict=True)]


def _common(one: str, other: str) -> int:
    """Characters that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def place_of(kind: str, given: str, names: Sequence[str], see: str = "") -> int:
    """The place in `names` of the one that is meant; `see` is the command that lists all.

    Raises: UnknownName, AmbiguousName.
    """
    if given in names:
        return names.index(given)
    number = number_of(given)
    if number is not None and number < len(names):
        return number
    ends = ends_of(given) if given else []
    meant = [
        place
        for place, name in enumerate(names)
        if any(
            len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)
            for start, end in ends
        )
    ]
    if len(meant) > 1:
        raise AmbiguousName(kind, given, [names[place] for place in meant], see)
    if not meant:
        raise UnknownName(kind, given, names, see)
    return meant[0]
