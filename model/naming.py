"""Names as people write them: in full, or a part that distinguishes one from the others.

12D3…8xkQbnF2qY7vi1jd   as tables shorten it (… or ...)
12D3KooWK33             its beginning, or its end
#3                      its number in the tables
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from os.path import commonprefix

from vizpub.model.errors import AmbiguousName, UnknownName
from vizpub.model.wording import shorten

GAUGE = r"[A-Za-z0-9_.-]{1,64}"
"""The pattern of a gauge's name."""
_NUMBER = re.compile(r"#(\d{1,18})", re.ASCII)
_LEAST = 4
"""Least characters of a shortened name."""
_CAPTION, _LONG = 12, 24
"""Most characters of names that `captions` and `beginnings` leave whole."""
_CUT = re.compile(r"…|\.\.\.")


def number_of(text: str) -> int | None:
    """Return the number in a text such as `#3`; null for another text."""
    match = _NUMBER.fullmatch(text)
    return int(match[1]) if match else None


def ends_of(text: str) -> list[tuple[str, str]]:
    """Return the possible beginnings and ends of a shortened name, as pairs."""
    start, *end = _CUT.split(text, maxsplit=1)
    return [(start, end[0])] if end else [(text, ""), ("", text)]


def captions(names: Sequence[str]) -> list[str]:
    """Shorten names to at most 12 characters: long ones to their ends, or else beginnings, of the
    least length that distinguishes them from all others, or else to some of both.

    ["12D3KooWAlpha", "12D3KooWBeta1", "news"] → ["…lpha", "…eta1", "news"]
    """
    long = {name for name in names if len(name) > _CAPTION}
    for size in range(_LEAST, _CAPTION):
        for part, form in ((slice(-size, None), "…{}"), (slice(size), "{}…")):
            counts = Counter(name[part] for name in names)
            if all(counts[name[part]] == 1 for name in long):
                return [form.format(name[part]) if name in long else name for name in names]
    return [shorten(name, _CAPTION) for name in names]


def beginnings(names: Sequence[str]) -> list[str]:
    """Shorten names of more than 24 characters to their least unambiguous beginning, 12 or more."""
    if not names:
        return []
    ordered = sorted(names)
    # A name has the most in common with a neighbour in the order.
    common = [len(commonprefix(pair)) for pair in pairwise(ordered)]  # noqa: RUF071 - characters
    lengths = dict(zip(ordered, map(max, [0, *common], [*common, 0]), strict=True))
    forms = [name[: max(lengths[name] + 1, 12)] if len(name) > _LONG else name for name in names]
    sizes = {len(form) for form in forms}
    ends = {name[-size:] for size in sizes for name in names if len(name) > size}
    return [name if form in ends else form for name, form in zip(names, forms, strict=True)]


def place_of(kind: str, text: str, names: Sequence[str], see: str = "") -> int:
    """Return the place in `names` of the one that a text means; `see`: the command that lists all.

    Raises: UnknownName, AmbiguousName.
    """
    if text in names:
        return names.index(text)
    number = number_of(text)
    if number is not None and number < len(names):
        return number
    ends = ends_of(text) if text else []
    places = [
        place
        for place, name in enumerate(names)
        if any(
            len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)
            for start, end in ends
        )
    ]
    if len(places) > 1:
        raise AmbiguousName(kind, text, [names[place] for place in places], see)
    if not places:
        raise UnknownName(kind, text, names, see)
    return places[0]
