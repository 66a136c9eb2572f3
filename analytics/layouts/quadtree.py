"""The push of all peers on each, by a tree of squares (Barnes and Hut, 1986)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vizpub.machine.compiled import compiled
from vizpub.model.arrays import Floats

Children = npt.NDArray[np.int32]

_DEEPEST = 40
"""Peers that are closer than this many halvings of the picture are as one."""
_ROOM = 2 * _DEEPEST
"""Squares that one more peer may need."""
_NEAR = 0.8
"""A square is looked into if its width is more than this share of its distance."""
_CLOSEST = 1e-6
"""Square of the distance below which the push no longer grows."""


def push_forces(places: Floats, wanted: float) -> Floats:
    """Sum the forces of all other peers on each: `wanted`² / distance; shape (peers, 2)."""
    children, squares = _build_tree(places)
    return _sum_forces(places, children, squares, wanted)


@compiled("(float64, float64, float64, float64)")
def _quadrant(x: float, y: float, middle_x: float, middle_y: float) -> int:
    """Which child: 1 = right, 2 = up, 3 = both."""
    return (x >= middle_x) + 2 * (y >= middle_y)


@compiled("(int32[:, ::1], float64[:, ::1])")
def _double_room(children: Children, squares: Floats) -> tuple[Children, Floats]:
    """Copy both arrays into arrays with twice the room."""
    room = children.shape[0]
    more, larger = np.full((2 * room, 4), -1, np.int32), np.zeros((2 * room, 4))
    more[:room] = children
    larger[:room] = squares
    return more, larger


@compiled("(float64, float64, float64[::1], int32[:, ::1], float64[:, ::1], int64)")
def _insert(
    x: float, y: float, frame: Floats, children: Children, squares: Floats, count: int
) -> int:
    """Put a peer into the squares, of which there are `count`; gives how many there are then.

    `frame` is the picture: its left and lower ends, and its width.
    """
    left_end, low, size = frame
    square = 0
    for _ in range(_DEEPEST):
        peers = squares[square, 1]
        if peers == 0:
            break
        size /= 2
        if children[square].max() < 0:  # the peer that was alone here moves into a child
            occupied = _quadrant(
                squares[square, 2] / peers, squares[square, 3] / peers, left_end + size, low + size
            )
            children[square, occupied] = count
            squares[count, 0] = size
            squares[count, 1:] = squares[square, 1:]
            count += 1
        squares[square, 1] += 1
        squares[square, 2] += x
        squares[square, 3] += y
        part = _quadrant(x, y, left_end + size, low + size)
        left_end += size * (part % 2)
        low += size * (part // 2)
        if children[square, part] < 0:
            children[square, part] = count
            squares[count, 0] = size
            count += 1
        square = children[square, part]
    squares[square, 1] += 1
    squares[square, 2] += x
    squares[square, 3] += y
    return count


@compiled("(float64[:, ::1],)")
def _build_tree(places: Floats) -> tuple[Children, Floats]:
    """The squares: four children each (-1 = none), and width, peers, and the centre of these.

    The first is the whole picture. One without children has one peer, or several in one place.
    """
    left_end, low = places[:, 0].min(), places[:, 1].min()
    width = max(places[:, 0].max() - left_end, places[:, 1].max() - low, 1e-9) * 1.000001
    frame = np.array([left_end, low, width])
    room = 3 * places.shape[0] + _ROOM
    children = np.full((room, 4), -1, np.int32)
    squares = np.zeros((room, 4))
    squares[0, 0] = width
    count = 1
    for v in range(places.shape[0]):
        if count + _ROOM > children.shape[0]:
            children, squares = _double_room(children, squares)
        count = _insert(places[v, 0], places[v, 1], frame, children, squares, count)
    for square in range(count):
        squares[square, 2] /= squares[square, 1]
        squares[square, 3] /= squares[square, 1]
    return children[:count].copy(), squares[:count].copy()


@compiled("(float64[:, ::1], int32[:, ::1], float64[:, ::1], float64)")
def _sum_forces(places: Floats, children: Children, squares: Floats, wanted: float) -> Floats:
    force = np.zeros_like(places)
    stack = np.empty(4 * (_DEEPEST + 2), np.int32)
    for v in range(places.shape[0]):
        stack[0] = 0
        top = 1
        while top:
            top -= 1
            square = stack[top]
            x, y = places[v, 0] - squares[square, 2], places[v, 1] - squares[square, 3]
            squared_distance = x * x + y * y
            width = squares[square, 0]
            is_leaf = True
            for part in range(4):
                is_leaf = is_leaf and children[square, part] < 0
            if is_leaf or width * width < _NEAR * _NEAR * squared_distance:
                strength = squares[square, 1] * wanted * wanted / max(squared_distance, _CLOSEST)
                force[v, 0] += x * strength
                force[v, 1] += y * strength
            else:
                for part in range(4):
                    if children[square, part] >= 0:
                        stack[top] = children[square, part]
                        top += 1
    return force
