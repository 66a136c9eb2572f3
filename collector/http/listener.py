"""The socket that listens: it takes no more connections than there are files for."""

from __future__ import annotations

import errno
import resource
import socket
from contextlib import suppress
from typing import Any

from vizpub.model.errors import UseError

_OTHERS = 256
"""Files that the log, the run and other ends need."""


def most_connections(wanted: int) -> int:
    """As many as the system lets this process have beside its files, at least a few."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(soft - _OTHERS, soft // 2))


class Door(socket.socket):
    """Says that files have ended while so many connections are open. The event loop then looks
    away for a second: others wait in the kernel.
    """

    most = 1
    """Connections at once."""
    turned = 0
    """Times that it was full."""

    def accept(self) -> tuple[socket.socket, Any]:
        """As of a socket. Raises: OSError where it is full."""
        self._open = {one for one in getattr(self, "_open", set()) if one.fileno() >= 0}
        if len(self._open) >= self.most:
            self.turned += 1
            raise OSError(errno.EMFILE, "as many connections are open as may be")
        found, address = super().accept()
        self._open.add(found)
        return found, address


def door_of(listening: socket.socket, most: int) -> Door:
    """The door of a socket that listens."""
    door = Door(listening.family, listening.type, listening.proto, listening.detach())
    door.most = most
    return door


def listen_at(host: str, port: int, before: int = 0) -> socket.socket:
    """A socket that listens; at :: also to IPv4. `before` is tried first where any port will do.

    Raises: UseError.
    """
    if before and not port:
        with suppress(UseError):
            return listen_at(host, before)
    is_v6 = ":" in host
    try:
        return socket.create_server(
            (host, port),
            family=socket.AF_INET6 if is_v6 else socket.AF_INET,
            dualstack_ipv6=is_v6 and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise UseError(f"cannot listen at {host}:{port}: {error.strerror}") from error
