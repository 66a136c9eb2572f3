"""The times that the explorer passes to commands."""

from __future__ import annotations

import pytest

from vizpub.explorer.one_peer import time_text
from vizpub.model.clock import Clock


@pytest.mark.parametrize(
    ("clock", "tick", "text"),
    [
        (Clock(1, 1_000_000, 0, 9), 4, "4"),
        (Clock(1, None, 0, 9), 4, "4"),
        (Clock(1_000_000, 1, 0, 9), 4_999_999, "4"),
        (Clock(1_000_000, 1, 0, 9), 4_500_000, "4500000us"),
    ],
)
def test_tick_is_said_as_commands_take_it(clock: Clock, tick: int, text: str) -> None:
    assert time_text(clock, tick) == text
    assert clock.parse_at(text) == tick
