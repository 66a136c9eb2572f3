"""The listening socket, bounded by the files and connections that the system allows a process."""

from __future__ import annotations

import errno
import resource
import socket
from contextlib import suppress
from typing import Any

from vizpub.model.errors import UseError

_OTHERS = 256
"""Files that the log, the run and other connections need."""


def allow_descriptors(most: int) -> None:
    """Raise the limit of open files and connections to so many, or to the system's maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections(wanted: int) -> int:
    """Return the number of connections that this process can have in addition to its files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(soft - _OTHERS, soft // 2))


class BoundedSocket(socket.socket):
    """A listening socket that pretends to lack files while too many connections are open. The event
    loop then pauses for a second, and others wait in the kernel.
    """

    most = 1
    """Connections at once."""
    turned = 0
    """The number of connections that it turned away because it was full."""

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
    """Turn a listening socket into a bounded one."""
    door = BoundedSocket(listening.family, listening.type, listening.proto, listening.detach())
    door.most = most
    return door


def listen_at(host: str, port: int, preferred_port: int = 0) -> socket.socket:
    """Open a listening socket, at :: also for IPv4. If `port` is 0, `preferred_port` is tried
    first.

    Raises: UseError.
    """
    if preferred_port and not port:
        with suppress(UseError):
            return listen_at(host, preferred_port)
    is_v6 = ":" in host
    try:
        return socket.create_server(
            (host, port),
            family=socket.AF_INET6 if is_v6 else socket.AF_INET,
            dualstack_ipv6=is_v6 and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise UseError(
            f"cannot listen at {host}:{port}: {error.strerror}; give another --port or --host"
        ) from error
