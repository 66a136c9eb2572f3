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
    """Ports, version and process of the last start; the record outlives the server."""

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
        """The address of Bolt."""
        return f"bolt://{HOST}:{self.bolt_port}"

    @property
    def browser(self) -> str:
        """The address of Neo4j Browser, which names the server to log in to."""
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
        """The output of the server's process."""
        return self.path / "logs" / "console.log"

    @property
    def debug_log(self) -> Path:
        """The server's log about its databases."""
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
        """The lock that is held while the server is started, stopped or removed."""
        return self.path / ".lock"

    @property
    def load_lock(self) -> Path:
        """The lock that is held while a run is loaded."""
        return self.path / ".load.lock"

    @property
    def replacement_file(self) -> Path:
        """Exists while a new database replaces an old one, whose name it holds."""
        return self.path / "remade"

    @property
    def has_store(self) -> bool:
        """True if a server has ever created its databases here."""
        return (self.path / "data" / "databases" / "system").exists()

    def check(self) -> bool:
        """Return True if the home exists. Raises: UseError if anybody else owns or can enter it."""
        try:
            check_private(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def read_state(self) -> ServerState | None:
        """Return the state that the last start wrote, or None if there is none to read."""
        try:
            state = json.loads(self.state_file.read_text("utf-8"))
            names = {field.name for field in fields(ServerState)}
            return ServerState(**{name: state[name] for name in names & state.keys()})
        except (OSError, ValueError, TypeError, AttributeError):
            return None

    def write_state(self, state: ServerState) -> None:
        """Replace the state file in one step."""
        replace_text(self.state_file, json.dumps(asdict(state), indent=1))

    def read_password(self) -> str | None:
        """Return the password, if there is one yet. Raises: UseError if others may read it."""
        try:
            return read_private(self.password_file).strip()
        except FileNotFoundError:
            return None

    def make_password(self) -> str:
        """Return the password; make a random one if there is none yet."""
        if password := self.read_password():
            return password
        password = secrets.token_hex(16)
        replace_text(self.password_file, password)
        return password
