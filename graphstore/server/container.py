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

from filelock import FileLock
from neo4j.exceptions import AuthError

from vizpub.graphstore.server.address import Connection
from vizpub.graphstore.server.connection import connect
from vizpub.graphstore.server.offline import SCRATCH, Command, Tool
from vizpub.machine.jvm.artifacts import cache_path
from vizpub.machine.private import make_private
from vizpub.model.errors import Neo4jUnavailable, UseError

_DATA = "/data"
"""Where the images keep databases; a volume, so that they outlive a container."""
_STAGED = "/staged"
_HEAP = "1g"
_LABEL = "vizpub.tool"
_STOP_S, _START_S, _POLL_S = 120, 180, 0.1
_BOLT = 7687

_SETTLE = f"""
set -e
cd {_DATA}
if [ -n "$1" ]; then echo "$1" >vizpub-remade.new; mv vizpub-remade.new vizpub-remade; fi
for kind in databases transactions; do
    if [ -e vizpub-remade ] && [ -e "$kind/{SCRATCH}" ]; then
        rm -rf "$kind/$(cat vizpub-remade)"
        mv "$kind/{SCRATCH}" "$kind/$(cat vizpub-remade)"
    fi
    rm -rf "$kind/{SCRATCH}"
done
rm -f vizpub-remade
"""
"""As vizpub.graphstore.server.admin.settle, for a database that is named, or for what was broken
off."""


class Container:
    """The container `name`, whose server `connection` reaches."""

    def __init__(self, name: str, connection: Connection) -> None:
        self._name, self._connection = name, connection

    def start(self) -> Connection:
        """See vizpub.graphstore.server.offline.Place. Raises: UseError where docker knows no such
        container.
        """
        ports = _ports(self._inspect())
        self._docker("start", self._name)
        return self._wait_until_ready(ports)

    @contextmanager
    def stopped(self) -> Iterator[_ContainerTool]:
        """See vizpub.graphstore.server.offline.Place.

        Raises: UseError where the container is not the server that the connection reaches, or
        keeps its databases in no volume.
        """
        found = self._inspect()
        tool = _ContainerTool(self._name, found["Image"], found["Config"]["User"])
        self._check_volume(found)
        with FileLock(_lock_file(found["Id"])):
            self._docker("stop", "--time", str(_STOP_S), self._name)
            try:
                self._check_silence()
                tool.end_others()
                tool.settle()
                yield tool
            finally:
                self._docker("start", self._name)
                self._wait_until_ready(_ports(found))

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """See vizpub.graphstore.server.offline.Place."""
        with TemporaryDirectory(prefix="vizpub-") as folder:
            yield Path(folder)

    def load_lock(self) -> Path:
        """See vizpub.graphstore.server.offline.Place."""
        return _lock_file(self._inspect()["Id"], "-load")

    def _docker(self, *words: str) -> str:
        return _docker(f"container {self._name}", *words)

    def _inspect(self) -> dict[str, Any]:
        try:
            (found,) = json.loads(self._docker("container", "inspect", self._name))
        except Neo4jUnavailable as error:
            raise UseError(f"{error}\n  name one that `docker ps` shows") from error
        inspected: dict[str, Any] = found
        return inspected

    def _check_volume(self, inspected: dict[str, Any]) -> None:
        """Raises: UseError where other containers cannot see the databases."""
        if _DATA not in [mount["Destination"] for mount in inspected["Mounts"]]:
            raise UseError(
                f"container {self._name} has no volume at {_DATA}, where Neo4j's images keep "
                "databases; run it with one"
            )

    def _check_silence(self) -> None:
        """Raises: UseError where a server answers although the container is stopped."""
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
        """Wait for Bolt, at the port that is mapped now in place of the earlier one."""
        deadline = time.monotonic() + _START_S
        while True:
            found = self._inspect()
            self._connection = _moved(self._connection, ports, _ports(found))
            ports = _ports(found)
            try:
                connect(self._connection).close()
            except Neo4jUnavailable as error:
                late = time.monotonic() > deadline
                if isinstance(error.__cause__, AuthError) or late or not found["State"]["Running"]:
                    raise
                time.sleep(_POLL_S)
            else:
                return self._connection


@dataclass(frozen=True)
class _ContainerTool(Tool):
    """The tool, for a container that is stopped."""

    server: str
    image: str
    user: str
    staged: dict[str, Path] = field(default_factory=dict)
    """Folders of this machine by their paths in the containers of the next calls."""

    @contextmanager
    def command(self, *words: str) -> Iterator[Command]:
        """A container of its own, which has what was placed. Raises: Neo4jUnavailable."""
        with self._container("neo4j-admin", *words) as name:
            for path, folder in self.staged.items():
                _copy(folder, name, path)
            yield Command(["docker", "start", "--attach", "--interactive", name], self._of)

    def place(self, folder: Path) -> str:
        """A path of its own, where the folder is copied to before each call."""
        path = f"{_STAGED}{len(self.staged)}"
        self.staged[path] = folder
        return path

    def settle(self, database: str = "") -> None:
        """Put what was made into the place of a database, or end what was broken off."""
        with self._container("sh", "-c", _SETTLE, "settle", database) as name:
            _docker(self._of, "start", "--attach", name)

    def end_others(self) -> None:
        """End the tools that work on these volumes and whose parents are gone."""
        listed = ("ps", "--all", "--quiet", "--filter", f"label={_LABEL}={self.server}")
        for name in _docker(self._of, *listed).split():
            _docker(self._of, "rm", "--force", name)

    @property
    def _of(self) -> str:
        return f"container {self.server}"

    @contextmanager
    def _container(self, *words: str) -> Iterator[str]:
        name = _docker(
            self._of, "create", "--interactive", "--network=none", f"--env=HEAP_SIZE={_HEAP}",
            f"--label={_LABEL}={self.server}", f"--volumes-from={self.server}",
            f"--user={self.user}", self.image, *words,
        ).strip()  # fmt: skip
        try:
            yield name
        finally:
            _docker(self._of, "rm", "--force", name)


def _lock_file(container: str, use: str = "") -> Path:
    """One at a time stops it, or loads; in a folder into which no other user can put a link."""
    folder = cache_path() / "containers"
    make_private(folder)
    return folder / f"{container[:12]}{use}.lock"


def _docker(of: str, *words: str) -> str:
    """What docker says. Raises: Neo4jUnavailable, UseError where there is no docker."""
    try:
        return Command(["docker", *words], of, what="docker").run()
    except FileNotFoundError:
        raise UseError(f"{of} cannot be reached: the docker command is not installed") from None


def _copy(folder: Path, container: str, path: str) -> None:
    """Copy a folder that every user can read and write: the tool runs there as another user."""

    def for_all(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        return entry.replace(mode=0o777 if entry.isdir() else 0o666, deep=False)

    with TemporaryFile() as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(folder, path.lstrip("/"), filter=for_all)
        packed.seek(0)
        copy = ["docker", "cp", "-", f"{container}:/"]
        Command(copy, f"container {container}", what="docker").run(stdin=packed)


def _ports(inspected: dict[str, Any]) -> dict[str, set[int]]:
    """The ports of this machine by those of the container; none while it is stopped."""
    mapped = inspected["NetworkSettings"]["Ports"] or {}
    return {inside: {int(to["HostPort"]) for to in ports or ()} for inside, ports in mapped.items()}


def _moved(
    connection: Connection, before: dict[str, set[int]], after: dict[str, set[int]]
) -> Connection:
    """The connection, through the port that its own was replaced by at a start."""
    port = urlsplit(connection.uri).port
    for inside, ports in before.items():
        if port in ports and (new := after.get(inside)) and port not in new:
            return replace(connection, uri=connection.uri.replace(f":{port}", f":{min(new)}"))
    return connection
