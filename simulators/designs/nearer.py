"""Moves centres to where their subscribers are near."""

from __future__ import annotations

import numpy as np

from vizpub.simulators.designs.stars import Stars


def move_nearer(stars: Stars, delays: np.ndarray) -> int:
    """Give each topic, the largest first, the centre with the least total delay to its
    subscribers, unless the maximum degree would rise. `delays[u, v]` is the delay from u to v.

    Returns the number of topics that were moved.
    """
    subscribers, moved = stars.interests.subscribers, 0
    limit, both = max(map(len, stars.links), default=0), delays + delays.T
    for topic in sorted(stars.centres, key=lambda one: (-len(subscribers[one]), one)):
        of_it = subscribers[topic]
        nodes = np.array(of_it)
        total = both[np.ix_(nodes, nodes)].sum(axis=1)
        current = of_it.index(stars.centres[topic])
        for place in np.argsort(total, kind="stable").tolist():
            if total[place] >= total[current]:
                break
            if stars.degree_as_centre(of_it[place], topic) <= limit:
                old = stars.lift(topic)
                stars.place(topic, of_it[place])
                if max(map(len, stars.links)) <= limit:
                    moved += 1
                    break
                stars.lift(topic)
                stars.place(topic, old)
    return moved
