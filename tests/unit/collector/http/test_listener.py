"""A collector takes no more connections than there are files for, and goes on behind them."""

from __future__ import annotations

import errno
import resource
import socket
from contextlib import ExitStack

import pytest

from vizpub.collector.http.listener import bounded_socket, most_connections


def test_full_door_says_that_files_have_ended_until_a_connection_is_over() -> None:
    """The event loop stops to accept for a second then, as where the system says so."""
    with ExitStack() as stack:
        door = stack.enter_context(bounded_socket(socket.create_server(("127.0.0.1", 0)), 2))
        for _ in range(4):
            stack.enter_context(socket.create_connection(door.getsockname(), 20))
        first, _ = door.accept()
        second, _ = door.accept()
        stack.enter_context(second)
        for _ in range(2):
            with pytest.raises(OSError, match="may be") as caught:
                door.accept()
            assert caught.value.errno == errno.EMFILE
        first.close()
        stack.enter_context(door.accept()[0])
        assert door.turned == 2


@pytest.mark.parametrize(("soft", "most"), [(1024, 768), (65_536, 4096), (256, 128)])
def test_connections_leave_files_for_the_log_and_the_run(
    monkeypatch: pytest.MonkeyPatch, soft: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert most_connections(4096) == most
