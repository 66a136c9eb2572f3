"""Social networks and samples of their users.

An edge list has a line for each edge: two numbers of users, separated by blanks or commas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice
from random import Random

from vizpub.model.errors import UseError
from vizpub.simulators.engine.files import is_whole_number, lines, not_understood

_Neighbours = Mapping[int, Collection[int]]
"""Neighbours of each user."""

_FLY_BACK = 0.15
"""Probability with which a random walk starts again at each step."""
_STEPS = 100
"""Steps per wanted user before the walk starts at another user."""


def read_edges(name: str) -> list[tuple[int, int]]:
    """The distinct edges of a file, without those from a user to itself.

    Raises: InputError if the file cannot be read, naming the line.
    """
    numbered = lines(name)
    head = list(islice(((line, _edge(name, line, text)) for line, text in numbered), 1))
    rest = [_edge(name, line, text) for line, text in numbered]
    if head:
        line, first = head[0]
        # Some files begin with the numbers of users and edges.
        if first == (len(set(chain.from_iterable(rest))), len(rest)):
            raise not_understood(
                name, line, f"'{first[0]} {first[1]}' counts users and edges: remove this line"
            )
    edges = chain((edge for _, edge in head), rest)
    return list(dict.fromkeys((one, other) for one, other in edges if one != other))


def _edge(name: str, line: int, text: str) -> tuple[int, int]:
    words = text.replace(",", " ").split()
    if len(words) != 2 or not (is_whole_number(words[0]) and is_whole_number(words[1])):
        raise not_understood(name, line, f"'{text[:40]}' is not two numbers of users")
    return int(words[0]), int(words[1])


def neighbours(edges: Collection[tuple[int, int]]) -> dict[int, list[int]]:
    """The neighbours of each user, ignoring the direction of edges; users ascend."""
    linked: dict[int, set[int]] = {}
    for one, other in edges:
        linked.setdefault(one, set()).add(other)
        linked.setdefault(other, set()).add(one)
    return {user: sorted(linked[user]) for user in sorted(linked)}


def random_users(graph: _Neighbours, count: int, random: Random) -> list[int]:
    """Distinct users, drawn uniformly, in random order."""
    _refuse_too_many(count, len(graph), "users")
    return random.sample(list(graph), count)


def connected_users(graph: Mapping[int, list[int]], count: int, random: Random) -> list[int]:
    """Users that a random walk visits, in random order; they are connected.

    At each step the walk returns to its start with a probability of 0.15; if it has not visited
    enough users after a hundred steps for each, it continues from another. Such samples keep
    degrees, clustering and distances best (Leskovec and Faloutsos, KDD 2006, section 3.3), but
    there the new start is any user: here it is a visited one, so that all are connected. Users
    with many links are visited more often.
    """
    # One of the large enough components, drawn by size.
    components = list(_components(graph))
    _refuse_too_many(count, max(map(len, components), default=0), "connected users")
    large = [component for component in components if len(component) >= count]
    component = random.choices(large, [len(component) for component in large])[0]
    start = at = random.choice(component)
    met = {start: None}
    steps = 0
    while len(met) < count:
        steps += 1
        if steps % (_STEPS * count) == 0:
            start = random.choice(list(met))
        at = start if random.random() < _FLY_BACK else random.choice(graph[at])
        met[at] = None
    return random.sample(list(met), count)


def _components(graph: _Neighbours) -> Iterator[list[int]]:
    seen: set[int] = set()
    for user in graph:
        if user in seen:
            continue
        seen.add(user)
        reached = [user]
        for one in reached:
            new = [other for other in graph[one] if other not in seen]
            seen.update(new)
            reached += new
        yield reached


def _refuse_too_many(count: int, there_are: int, users: str) -> None:
    if count > there_are:
        raise UseError(f"{count} peers are needed, but the network has only {there_are} {users}")
