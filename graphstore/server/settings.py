"""Settings of the local Neo4j: its main classes, JVM arguments and `neo4j.conf`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vizpub.graphstore.server.home import HOST

JARS = "neo4j"
"""The server's set in the lock of artifacts, whose version is the server's."""

SERVER_CLASS = "org.neo4j.server.CommunityEntryPoint"
"""Of 5.x; 2026.x starts with org.neo4j.server.Neo4jCommunity and needs Java 25."""

ADMIN_CLASS = "org.neo4j.cli.AdminTool"

SET_PASSWORD = ("dbms", "set-initial-password")

SERVER_JVM = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "-Dlog4j2.disable.jmx=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dfile.encoding=UTF-8",
)
"""JVM arguments of a server, however large it is."""

ADMIN_JVM = (*SERVER_JVM, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")
"""JVM arguments for the administration tool, which runs for a second."""


@dataclass(frozen=True)
class Profile:
    """JVM arguments and memory of a server."""

    jvm: tuple[str, ...]
    page_cache: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """More lines of `neo4j.conf`; they override the settings of all servers."""


PROFILES = {
    "default": Profile((*SERVER_JVM, "-Xms512m", "-Xmx2g"), "512m"),
    "test": Profile(
        (*SERVER_JVM, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m"),
        "64m",
        # Tests load and remove small runs, so the database's statistics keep changing, and each
        # statement would be planned again, which takes longer than running it.
        {"dbms.cypher.min_replan_interval": "1h"},
    ),
}
"""`default` is for users. `test` starts in half the time, but is slower under load."""

_BROWSER_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "img-src 'self' data:",
        "style-src 'self' 'unsafe-inline'",
        "font-src 'self' data:",
        "base-uri 'none'",
        "object-src 'none'",
        "frame-ancestors 'none'",
        "connect-src 'self' ws: http:",
    )
)
"""What Neo4j Browser may load: nothing from outside."""


def settings(profile: Profile) -> dict[str, str]:
    """Return the settings that hold wherever the server runs: all but addresses and directories."""
    return {
        "server.https.enabled": "false",
        "server.memory.pagecache.size": profile.page_cache,
        "dbms.usage_report.enabled": "false",
        "db.transaction.timeout": "120s",
        # While the server works on a request it says so every 30 s. A client that hears nothing
        # for twice as long takes it for hung; by default that would be two minutes.
        "server.bolt.connection_keep_alive": "30s",
        "db.memory.transaction.max": "512m",
        "db.lock.acquisition.timeout": "30s",
        # The run store is the system of record. So keep only the transaction logs that recovery
        # needs, and do not reserve space for them (half a gigabyte by default).
        "db.tx_log.preallocate": "false",
        "db.tx_log.rotation.retention_policy": "keep_none",
        # A full disk cuts the log off in the middle of a transaction. Drop that transaction, so
        # that the server starts again; a load sees in its ledger what it has to repeat.
        "internal.dbms.tx_log.fail_on_corrupted_log_files": "false",
        # LOAD CSV reads no file and, as all addresses are blocked, no page.
        "dbms.security.allow_csv_import_from_file_urls": "false",
        "internal.dbms.cypher_ip_blocklist": "0.0.0.0/0,::/0",
        "dbms.security.http_static_content_security_policy_header": _BROWSER_POLICY,
        # A path query that would try every path ends with an error instead of running on.
        "dbms.cypher.forbid_exhaustive_shortestpath": "true",
        # A peer's path to itself is the empty path, not an error.
        "dbms.cypher.forbid_shortestpath_common_nodes": "false",
        # Stop in one second instead of ten.
        "internal.dbms.bolt.netty_server_shutdown_quiet_period": "0",
        **profile.settings,
    }


def conf_text(bolt_port: int, http_port: int, profile: Profile) -> str:
    """Return the text of a local server's `neo4j.conf`."""
    bolt, http = f"{HOST}:{bolt_port}", f"{HOST}:{http_port}"
    addresses = {
        "server.default_listen_address": HOST,
        "server.default_advertised_address": HOST,
        "server.bolt.listen_address": bolt,
        "server.bolt.advertised_address": bolt,
        "server.http.listen_address": http,
        "server.http.advertised_address": http,
    }
    return "# Written by vizpub at every start.\n" + conf_lines(addresses | settings(profile))


def conf_lines(values: dict[str, str]) -> str:
    """Format settings as lines of a `neo4j.conf`."""
    return "".join(f"{name}={value}\n" for name, value in values.items())
