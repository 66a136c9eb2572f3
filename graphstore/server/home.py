"""The directory of a local Neo4j server: its files, and what is kept about its process."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from vizpub.machine.private import check_private, read_private, replace_text

HOST = "127.0.0.1"
"""Only this machine reaches a local server."""


@dataclass(frozen=True)
class ServerState:
    """What the last start chose and began; it outlives the server."""

    bolt_port: int
    http_port: int
    version: str
    pid: int | None = None
    """Null between the choice of ports and the birth of the process."""
    boot: str = ""
    ticks: int = 0
    """With `boot`, the process's birth (vizpub.machine.process.Birth): pids are used again."""

    @property
    def uri(self) -> str:
        """Where Bolt answers."""
        return f"bolt://{HOST}:{self.bolt_port}"

    @property
    def browser(self) -> str:
        """Where Neo4j Browser is served, with the server to log in to."""
        return f"http://{HOST}:{self.http_port}/browser/?dbms={self.uri}"


@dataclass(frozen=True)
class ServerHome:
    """A local server's directory (made at the first start) and the paths in it."""

    path: Path

    @property
    def conf(self) -> Path:
        """The directory of `neo4j.conf`."""
        return self.path / "conf"

    @property
    def log(self) -> Path:
        """What the server printed, start after start."""
        return self.path / "logs" / "console.log"

    @property
    def debug_log(self) -> Path:
        """What the server said of its databases."""
        return self.log.with_name("debug.log")

    @property
    def password_file(self) -> Path:
        """The password of the user `neo4j`, for its owner's eyes only."""
        return self.path / "password"

    @property
    def state_file(self) -> Path:
        """The ServerState as JSON."""
        return self.path / "server.json"

    @property
    def lock_file(self) -> Path:
        """Held while the server is started, stopped or removed."""
        return self.path / ".lock"

    @property
    def load_lock(self) -> Path:
        """Held while a run is loaded."""
        return self.path / ".load.lock"

    @property
    def remade_file(self) -> Path:
        """There while a new database is put into the place of an old one: its name."""
        return self.path / "remade"

    @property
    def has_store(self) -> bool:
        """Whether a server has ever made its databases here."""
        return (self.path / "data" / "databases" / "system").exists()

    def check(self) -> bool:
        """Whether it is there. Raises: UseError where anybody else owns it or can enter it."""
        try:
            check_private(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def read_state(self) -> ServerState | None:
        """What the last start wrote; null where there is none, or none that can be read."""
        try:
            state = json.loads(self.state_file.read_text("utf-8"))
            known = {field.name for field in fields(ServerState)}
            return ServerState(**{name: state[name] for name in known & state.keys()})
        except (OSError, ValueError, TypeError, AttributeError):
            return None

    def write_state(self, state: ServerState) -> None:
        """Replace the state file in one step."""
        replace_text(self.state_file, json.dumps(asdict(state), indent=1))

    def read_password(self) -> str | None:
        """The password, null before the first start. Raises: UseError if others may read it."""
        try:
            return read_private(self.password_file).strip()
        except FileNotFoundError:
            return None

    def make_password(self) -> str:
        """The password, a random one where there is none yet."""
        if known := self.read_password():
            return known
        password = secrets.token_hex(16)
        replace_text(self.password_file, password)
        return password
