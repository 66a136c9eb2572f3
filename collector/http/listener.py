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
    """Return how many connections the system lets this process have beside its files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(soft - _OTHERS, soft // 2))


class BoundedSocket(socket.socket):
    """A listening socket that pretends to lack files while too many connections are open. The event
    loop then pauses for a second: others wait in the kernel.
    """

    most = 1
    """Connections at once."""
    turned = 0
    """Times that it was full."""

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Raises: OSError if too many are open."""
        self._open = {one for one in getattr(self, "_open", set()) if one.fileno() >= 0}
        if len(self._open) >= self.most:
            self.turned += 1
            raise OSError(errno.EMFILE, "as many connections are open as may be")
        connection, address = super().accept()
        self._open.add(connection)
        return connection, address


def bounded_socket(listening: socket.socket, most: int) -> BoundedSocket:
    """Turn a listening socket into one that is bounded."""
    door = BoundedSocket(listening.family, listening.type, listening.proto, listening.detach())
    door.most = most
    return door


def listen_at(host: str, port: int, port_before: int = 0) -> socket.socket:
    """Open a socket that listens; at :: also to IPv4. `port_before` is tried first if any will do.

    Raises: UseError.
    """
    if port_before and not port:
        with suppress(UseError):
            return listen_at(host, port_before)
    is_v6 = ":" in host
    try:
        return socket.create_server(
            (host, port),
            family=socket.AF_INET6 if is_v6 else socket.AF_INET,
            dualstack_ipv6=is_v6 and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise UseError(f"cannot listen at {host}:{port}: {error.strerror}") from error
