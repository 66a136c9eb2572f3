"""Address and login of a Neo4j, from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from vizpub.machine.private import read_secret
from vizpub.model.errors import UseError

NO_ADDRESS = "is not an address for queries"

_SCHEMES = tuple(
    name + encryption for name in ("bolt", "neo4j") for encryption in ("", "+s", "+ssc")
)


@dataclass(frozen=True)
class Connection:
    """Address, login and database of a Neo4j."""

    uri: str
    username: str
    password: str = field(repr=False)
    database: str = "neo4j"
    home: Path | None = field(default=None, compare=False)
    """Directory of the local server; only that server is sent the password."""


def from_environment() -> Connection | None:
    """Return the connection that the environment describes, or None if NEO4J_URI is not set.

    Also reads NEO4J_USERNAME (or NEO4J_USER; default neo4j), NEO4J_PASSWORD or the file that
    NEO4J_PASSWORD_FILE names, and NEO4J_DATABASE (default neo4j).

    Raises: UseError if NEO4J_URI is not an address for queries, or is set without a password.
    """
    get = os.environ.get
    if not (uri := get("NEO4J_URI")):
        return None
    check_uri(uri)
    return Connection(
        uri,
        get("NEO4J_USERNAME") or get("NEO4J_USER") or "neo4j",
        _environment_password(),
        get("NEO4J_DATABASE") or "neo4j",
    )


def check_uri(uri: str) -> None:
    """Check an address. Raises: UseError if it takes no queries or contains a secret."""
    if "@" in uri:
        raise UseError(
            "NEO4J_URI names a user or a password, which others would see there; "
            "set NEO4J_USERNAME and NEO4J_PASSWORD instead"
        )
    scheme = uri.partition("://")[0].lower() if "://" in uri else ""
    if scheme in _SCHEMES and _has_port(uri):
        return
    browser = " (http is for Neo4j Browser)" if scheme in ("http", "https") else ""
    raise UseError(
        f"NEO4J_URI: '{uri}' {NO_ADDRESS}{browser}; write it like "
        f"bolt://localhost:7687, or with one of {', '.join(_SCHEMES[1:])}"
    )


def _has_port(uri: str) -> bool:
    """Return True if the address names a valid port, or none."""
    try:
        return urlsplit(uri).port != 0  # the driver would cut larger numbers without a word
    except ValueError:
        return False


def _environment_password() -> str:
    if (password := os.environ.get("NEO4J_PASSWORD")) is not None:
        return password
    if not (file := os.environ.get("NEO4J_PASSWORD_FILE")):
        raise UseError(
            "NEO4J_URI is set and NEO4J_PASSWORD is not; set it too, or NEO4J_PASSWORD_FILE"
        )
    try:
        return read_secret(Path(file).expanduser()).rstrip("\r\n")
    except UseError as error:
        raise UseError(f"NEO4J_PASSWORD_FILE: {error}") from None
