"""A Neo4j in a container: what can be done while it is stopped, by docker's command line.

The administration tool runs in containers of its own, of the server's image and with its
volumes, one for each call. They hold what they read, so the engine may be on another machine.
"""

from __future__ import annotations

import json
import socket
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any
from urllib.parse import urlsplit

from neo4j.exceptions import AuthError

from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.offline import SCRATCH, Command, Tool
from vizpub.machine.jvm.artifacts import cache_path
from vizpub.machine.locks import hold_file_lock
from vizpub.machine.private import make_private
from vizpub.model.errors import Neo4jUnavailable, UseError

_DATA = "/data"
"""Where Neo4j's images keep databases: a volume, which outlives its container."""
_STAGED = "/staged"
_HEAP = "1g"
_TOOL_LABEL = "vizpub.tool"
_STOP_S, _START_S, _POLL_S = 120, 180, 0.1
_BOLT = 7687

_SETTLE = f"""
set -e
cd {_DATA}
if [ -n "$1" ]; then
    echo "$1" >vizpub-remade.new
    sync vizpub-remade.new
    mv vizpub-remade.new vizpub-remade
fi
for kind in databases transactions; do
    if [ -s vizpub-remade ] && [ -e "$kind/{SCRATCH}" ]; then
        rm -rf "$kind/$(cat vizpub-remade)"
        mv "$kind/{SCRATCH}" "$kind/$(cat vizpub-remade)"
    fi
    rm -rf "$kind/{SCRATCH}"
done
rm -f vizpub-remade
"""
"""The same as `admin.finish_replacement`, for the database that its argument names, or without one
for an interrupted replacement."""


class Container:
    """A Neo4j in the container `name`; `connection` reaches its server."""

    def __init__(self, name: str, connection: Connection) -> None:
        self._name, self._connection = name, connection

    def start(self) -> Connection:
        """See StoppableServer.start. Raises: UseError if docker knows no such container."""
        ports = _ports(self._inspect())
        self._docker("start", self._name)
        return self._wait_until_ready(ports)

    @contextmanager
    def offline_tool(self) -> Iterator[_ContainerTool]:
        """See StoppableServer.offline_tool.

        Raises: UseError if the connection reaches another server than the container's, or if
        the container keeps its databases in no volume.
        """
        inspected = self._inspect()
        tool = _ContainerTool(self._name, inspected["Image"], inspected["Config"]["User"])
        # The tool runs in a container of its own, which sees the databases only in a volume.
        if _DATA not in [mount["Destination"] for mount in inspected["Mounts"]]:
            raise UseError(
                f"container {self._name} has no volume at {_DATA}, where Neo4j's images keep "
                "databases; run it with one"
            )
        with hold_file_lock(_lock_file(inspected["Id"]), "stops this container"):
            self._docker("stop", "--time", str(_STOP_S), self._name)
            try:
                self._check_silence()
                tool.end_others()
                tool.finish_replacement()
                yield tool
            finally:
                self._docker("start", self._name)
                self._wait_until_ready(_ports(inspected))

    @contextmanager
    def staging_folder(self) -> Iterator[Path]:
        """See StoppableServer.staging_folder."""
        with TemporaryDirectory(prefix="vizpub-") as folder:
            yield Path(folder)

    def load_lock(self) -> Path:
        """See StoppableServer.load_lock."""
        return _lock_file(self._inspect()["Id"], "-load")

    def _docker(self, *words: str) -> str:
        return _docker(f"container {self._name}", *words)

    def _inspect(self) -> dict[str, Any]:
        try:
            (container,) = json.loads(self._docker("container", "inspect", self._name))
        except Neo4jUnavailable as error:
            raise UseError(f"{error}\n  name one that `docker ps` shows") from error
        inspected: dict[str, Any] = container
        return inspected

    def _check_silence(self) -> None:
        """Raise UseError if a server answers although the container is stopped."""
        address = urlsplit(self._connection.uri)
        with (
            suppress(OSError),
            socket.create_connection((address.hostname or "", address.port or _BOLT), timeout=5),
        ):
            raise UseError(
                f"container {self._name} is not the server that {self._connection.uri} reaches; "
                "name the container of that one"
            )

    def _wait_until_ready(self, ports: dict[str, set[int]]) -> Connection:
        """Wait until Bolt answers, at the port that is now mapped in place of that in `ports`."""
        deadline = time.monotonic() + _START_S
        while True:
            inspected = self._inspect()
            self._connection = _follow_port(self._connection, ports, _ports(inspected))
            ports = _ports(inspected)
            try:
                connect(self._connection).close()
            except Neo4jUnavailable as error:
                late, stopped = time.monotonic() > deadline, not inspected["State"]["Running"]
                if isinstance(error.__cause__, AuthError) or late or stopped:
                    raise
                time.sleep(_POLL_S)
            else:
                return self._connection


@dataclass(frozen=True)
class _ContainerTool(Tool):
    """The administration tool of a stopped container."""

    server: str
    image: str
    user: str
    staged: dict[str, Path] = field(default_factory=dict)
    """Folders of this machine, by their paths in the tool's containers."""

    @contextmanager
    def command(self, *words: str) -> Iterator[Command]:
        """Yield a command in a new container that has the shared folders.

        Raises: Neo4jUnavailable.
        """
        with self._container("neo4j-admin", *words) as name:
            for path, folder in self.staged.items():
                _copy_folder(folder, name, path)
            yield Command(["docker", "start", "--attach", "--interactive", name], self._label)

    def share(self, folder: Path) -> str:
        """Return a new path, to which the folder is copied before each call."""
        path = f"{_STAGED}{len(self.staged)}"
        self.staged[path] = folder
        return path

    def finish_replacement(self, database: str = "") -> None:
        """Finish the replacement of a database; without a name, of an interrupted one."""
        with self._container("sh", "-c", _SETTLE, "settle", database) as name:
            _docker(self._label, "start", "--attach", name)

    def end_others(self) -> None:
        """Remove the tools that still work on these volumes although their parents are gone."""
        listed = ("ps", "--all", "--quiet", "--filter", f"label={_TOOL_LABEL}={self.server}")
        for name in _docker(self._label, *listed).split():
            _docker(self._label, "rm", "--force", name)

    @property
    def _label(self) -> str:
        return f"container {self.server}"

    @contextmanager
    def _container(self, *words: str) -> Iterator[str]:
        name = _docker(
            self._label, "create", "--interactive", "--network=none", f"--env=HEAP_SIZE={_HEAP}",
            f"--label={_TOOL_LABEL}={self.server}", f"--volumes-from={self.server}",
            f"--user={self.user}", self.image, *words,
        ).strip()  # fmt: skip
        try:
            yield name
        finally:
            _docker(self._label, "rm", "--force", name)


def _lock_file(container: str, use: str = "") -> Path:
    """Return the lock file of a container, in a folder where no other user can plant a link."""
    folder = cache_path() / "containers"
    make_private(folder)
    return folder / f"{container[:12]}{use}.lock"


def _docker(server: str, *words: str) -> str:
    """Run docker and return its output. Raises: Neo4jUnavailable, UseError without docker."""
    try:
        return Command(["docker", *words], server, program="docker").run()
    except FileNotFoundError:
        raise UseError(
            f"{server} cannot be reached: the docker command is not installed; install it, or "
            "leave out the container"
        ) from None


def _copy_folder(folder: Path, container: str, path: str) -> None:
    """Copy a folder into a container, open to all users: the tool runs as another one there."""

    def open_to_all(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        return entry.replace(mode=0o777 if entry.isdir() else 0o666, deep=False)

    with TemporaryFile() as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, path.lstrip("/"), filter=open_to_all)
        packed.seek(0)
        words = ["docker", "cp", "-", f"{container}:/"]
        Command(words, f"container {container}", program="docker").run(stdin=packed)


def _ports(inspected: dict[str, Any]) -> dict[str, set[int]]:
    """Return the ports of this machine by those of the container; none while it is stopped."""
    mapped = inspected["NetworkSettings"]["Ports"] or {}
    return {inside: {int(to["HostPort"]) for to in ports or ()} for inside, ports in mapped.items()}


def _follow_port(
    connection: Connection, ports_before: dict[str, set[int]], ports_after: dict[str, set[int]]
) -> Connection:
    """Return the connection with the port that a restart has given to the container."""
    port = urlsplit(connection.uri).port
    for inside, ports in ports_before.items():
        if port in ports and (new := ports_after.get(inside)) and port not in new:
            return replace(connection, uri=connection.uri.replace(f":{port}", f":{min(new)}"))
    return connection
