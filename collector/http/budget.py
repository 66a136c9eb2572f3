"""Bounds of all requests together that are being processed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class NoRoom(Exception):
    """Other requests use all of the budget; the client may retry."""


class ByteBudget:
    """A number of bytes that requests share. Lives in one event loop."""

    def __init__(self, most: int) -> None:
        self.most, self.used, self.peak = most, 0, 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @contextmanager
    def growing(self, size: int = 0) -> Iterator[BudgetShare]:
        """Yield a share that may grow during the block; so many bytes of it are taken already."""
        part = BudgetShare(self, size)
        try:
            yield part
        finally:
            self.give(part.size)

    @asynccontextmanager
    async def of(self, size: int) -> AsyncIterator[BudgetShare]:
        """Wait for a share of a size, at most all of the budget, in order of arrival."""
        size = min(size, self.most)
        if self._waiting or self.used + size > self.most:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.give(size)
                raise
        else:
            self.take(size)
        with self.growing(size) as part:
            yield part

    def take(self, size: int) -> None:
        """Take more bytes. Raises: NoRoom."""
        if self.used + size > self.most:
            raise NoRoom
        self.used += size
        self.peak = max(self.peak, self.used)

    def give(self, size: int) -> None:
        """Return bytes to the budget, and serve those that wait."""
        self.used -= size
        while self._waiting:
            wanted, turn = self._waiting[0]
            if turn.cancelled():
                self._waiting.popleft()
            elif self.used + wanted <= self.most:
                self._waiting.popleft()
                self.take(wanted)
                turn.set_result(None)
            else:
                return


class BudgetShare:
    """A request's share of a budget."""

    def __init__(self, room: ByteBudget, size: int = 0) -> None:
        self._room, self.size = room, size

    def add(self, size: int) -> None:
        """Take more bytes. Raises: NoRoom."""
        self._room.take(size)
        self.size += size

    def shrink(self, size: int) -> None:
        """Return all but so many bytes to the budget."""
        less = max(self.size - size, 0)
        self.size -= less
        self._room.give(less)
