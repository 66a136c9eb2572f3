"""Why there is no connection to a Neo4j, and what the user can do."""

from __future__ import annotations

import re
import socket
import ssl
from typing import TYPE_CHECKING

from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    UnsupportedServerProduct,
)

from vizpub.model.errors import NO_ANSWER, Neo4jUnavailable

if TYPE_CHECKING:
    from vizpub.graphstore.server.address import Connection

NO_NEO4J = "no Neo4j that vizpub can talk to"

NO_HOST = "no host has that name"
WEB_SERVER = "a web server answers there"
AT_ONCE = "it closes the connection at once"
NO_TLS = "it does not answer in TLS"

RESTART = "restart it if it hangs (the local one with: vizpub neo4j stop)"

STOPPED = "its database could not write and has stopped"

_OLDEST = (5, 26)
"""The oldest Neo4j that knows our statements' Cypher; 2025.x and 2026.x follow 5.26."""

_NEEDED = "5.26, 2025 or 2026"
_AGENT = re.compile(r"Neo4j/(\d+)\.(\d+)")

_NOT_STARTED = ("its database '{database}' is not available", "see the server's log")

_BY_CODE = {
    "Neo.ClientError.Security.AuthenticationRateLimit": (
        "it refuses logins after many wrong passwords", "wait a minute, then check NEO4J_PASSWORD",
    ),
    "Neo.ClientError.Security.CredentialsExpired": (
        "the password must be changed first", "log in with Neo4j Browser and change it",
    ),
    "Neo.ClientError.Database.DatabaseNotFound": (
        "it has no database '{database}'", "check NEO4J_DATABASE",
    ),
    "Neo.TransientError.Database.DatabaseUnavailable": _NOT_STARTED,
    "Neo.TransientError.General.DatabaseUnavailable": _NOT_STARTED,
}  # fmt: skip

_STOPPED = re.compile(r"Neo\.DatabaseError\.Transaction\.Transaction(Log|Start|Commit)")
"""A database that could not write stops, and answers with these until it is restarted."""

_BY_CERTIFICATE = (
    ("expired", "it has to be renewed on the server"),
    ("not yet valid", "check the clocks of both machines"),
    ("mismatch", "NEO4J_URI has to name the server as its certificate does"),
    ("", "set SSL_CERT_FILE to the certificate of its authority, or write the address with "
         "+ssc in place of +s, which encrypts but does not check the server's identity"),
)  # fmt: skip
"""A part of OpenSSL's message, and what to do then."""


def connection_error(connection: Connection, error: Exception) -> Neo4jUnavailable:
    """Translate an error of the driver into words that a user can act on."""
    uri = connection.uri
    if isinstance(error, UnsupportedServerProduct):
        return no_neo4j_error(connection)
    if isinstance(error, (ServiceUnavailable, SessionExpired)):
        return _unreachable(connection, error)
    if isinstance(error, (ConfigurationError, ValueError)):
        return Neo4jUnavailable(uri, str(error), "write NEO4J_URI like bolt://localhost:7687")
    code = error.code if isinstance(error, Neo4jError) and error.code else ""
    if code in _BY_CODE:
        why, hint = _BY_CODE[code]
        return Neo4jUnavailable(uri, why.format(database=connection.database), hint)
    if isinstance(error, AuthError):
        why = f"wrong password for the user '{connection.username}'"
        return Neo4jUnavailable(uri, why, "check NEO4J_USERNAME and NEO4J_PASSWORD")
    message = error.message if isinstance(error, Neo4jError) else str(error)
    return stopped_error(uri, code) or Neo4jUnavailable(
        uri, message or code, "see the server's log"
    )


def no_neo4j_error(connection: Connection) -> Neo4jUnavailable:
    """Return the error for an address where another kind of server answers."""
    return Neo4jUnavailable(connection.uri, f"{NO_NEO4J} answers there", _upgrade())


def stopped_error(uri: str, code: str) -> Neo4jUnavailable | None:
    """Return the error for a database that stopped writing, or None for other codes."""
    if not _STOPPED.match(code):
        return None
    return Neo4jUnavailable(
        uri,
        f"{STOPPED}; usually its disk is full",
        "free some space there and restart it (the local one with: vizpub neo4j stop), "
        "then run the same command again",
    )


def _unreachable(connection: Connection, error: Exception) -> Neo4jUnavailable:
    uri, cause = connection.uri, _first_cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        message = cause.verify_message
        hint = next(hint for part, hint in _BY_CERTIFICATE if part in message)
        return Neo4jUnavailable(uri, f"its certificate is refused: {message.rstrip('.')}", hint)
    if isinstance(cause, socket.gaierror):
        return Neo4jUnavailable(uri, NO_HOST, "check NEO4J_URI")
    if isinstance(cause, ConnectionRefusedError):
        return Neo4jUnavailable(uri, NO_ANSWER)
    if timed_out(error):
        return Neo4jUnavailable(uri, NO_ANSWER, f"check NEO4J_URI, or {RESTART}")
    if "looks like HTTP" in str(cause):
        why = WEB_SERVER
        return Neo4jUnavailable(uri, why, "give the port for queries, usually 7687")
    why, hint = AT_ONCE, "if it needs TLS, write bolt+s:// in place of bolt://"
    if "+s" in uri:
        why = NO_TLS
        hint = "enable TLS there, or write bolt:// in place of bolt+s://, which does not encrypt"
    return Neo4jUnavailable(uri, why, hint)


def timed_out(error: BaseException) -> bool:
    """Return True if the driver gave up waiting."""
    return isinstance(_first_cause(error), TimeoutError)


def _first_cause(error: BaseException) -> BaseException:
    """Return the error at the bottom of the driver's; of several attempts, the first one's."""
    if isinstance(error, BaseExceptionGroup):
        return _first_cause(error.exceptions[0])
    cause = error.__cause__ or error.__context__
    return _first_cause(cause) if cause else error


def check_agent(uri: str, agent: str) -> None:
    """Raise Neo4jUnavailable unless the server is a Neo4j that is new enough.

    `agent` is the name that the server gives itself, such as "Neo4j/5.26.30".
    """
    version = _AGENT.match(agent)
    if not version or (int(version[1]), int(version[2])) < _OLDEST:
        server = agent.replace("/", " ") or "an unnamed server"
        raise Neo4jUnavailable(uri, f"it is {server}, and vizpub needs Neo4j {_NEEDED}", _upgrade())


def _upgrade() -> str:
    return "upgrade it, or unset NEO4J_URI and use a local one: vizpub neo4j start"
