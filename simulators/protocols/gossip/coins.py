"""The coin of each copy: whether a peer passes an event on to a neighbour that does not want it.

A coin is a hash of event, sender and receiver, not the next number of a generator, so it does not
depend on the order in which peers are simulated: the compiled sweep (`events.py`) and the full
simulation toss the same ones.
"""

from __future__ import annotations

from vizpub.machine.compiled import compiled

_WORD = 0xFFFF_FFFF
_SHARE = 1 / 2**32


@compiled("int64(int64)")
def mix_bits(word: int) -> int:
    """A permutation of the 32-bit words that changes half of the bits, whatever one changes.

    Multipliers below 2^31 (found by C. Wellons' search), so that no product exceeds 63 bits.
    """
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & _WORD
    word = ((word ^ (word >> 15)) * 0x735A2D97) & _WORD
    return word ^ (word >> 15)


@compiled("int64(int64, int64)")
def event_key(seed: int, message: int) -> int:
    """The key that all coins of an event share; `seed` and `message` count from 0."""
    return mix_bits(mix_bits(mix_bits(seed & _WORD) ^ (seed >> 32 & _WORD)) ^ (message & _WORD))


@compiled("float64(int64, int64, int64)")
def coin(key: int, sender: int, to: int) -> float:
    """A number in [0, 1) for a copy of the event with that key."""
    return mix_bits(mix_bits(key ^ sender) ^ to) * _SHARE
