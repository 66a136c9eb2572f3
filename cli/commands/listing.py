"""The commands of `vizpub`: where each is defined, and the first line of its help.

`vizpub --help` prints these lines and imports no command. A test compares them with the docstrings.
"""

from __future__ import annotations

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Every day": {
        "ingest": (
            "everyday.ingest:ingest",
            "Read reports or a trace into a run: tables, metrics and a graph.",
        ),
        "metrics": (
            "everyday.metrics:metrics",
            "Print metrics of a run: per interval, peer, topic or message.",
        ),
        "plot": (
            "figures.plot:plot",
            "Plot metrics of a run; the plotted numbers are written beside the figure as CSV.",
        ),
        "explore": (
            "everyday.explore:explore",
            "Watch a run in a web browser: its overlay, metrics and messages.",
        ),
        "compare": (
            "everyday.compare:compare",
            "Compare runs, systems and seeds, with 95 % confidence intervals.",
        ),
        "topic": (
            "everyday.overlay:topic",
            "Print a topic's links between subscribers, or list the topics.",
        ),
        "path": (
            "everyday.overlay:path",
            "Find a shortest path of links between two peers at a given time.",
        ),
        "message": (
            "everyday.overlay:message",
            "Print how a message spread, or who missed it and why.",
        ),
        "query": (
            "everyday.query:query",
            "Run a shipped query, or your own from a file, or list the queries.",
        ),
        "sql": ("everyday.sql:sql", "Query the tables of a run in SQL, or list them."),
        "cypher": ("everyday.query:cypher", "Run your own Cypher query, which can only read."),
        "demo": ("everyday.demo:demo", "Show what vizpub does, on a real trace of gossipsub."),
        "docs": (
            "setup.docs:docs",
            "Open the docs of this version in a web browser; no network is needed.",
        ),
        "doctor": (
            "setup.doctor:doctor",
            "Check what is installed here, what is missing, and how to get it.",
        ),
        "export": (
            "everyday.export:GROUP",
            "Write a run as GEXF, CSV or HTML, or a message for netviz.",
        ),
    },
    "Groups of commands": {
        "runs": ("runs.group:GROUP", "List, show, check, settle, copy, back up and remove runs."),
        "neo4j": ("neo4j.neo4j:GROUP", "Load runs into Neo4j, and manage the local server."),
        "live": ("live.group:GROUP", "Collect a run from peers while they run."),
        "lab": ("lab.group:GROUP", "Simulate and construct overlays, and run experiments."),
        "session": ("setup.session:GROUP", "Keep Spark running for small ingests."),
        "config": ("setup.config:GROUP", "Show the settings and where they come from."),
    },
}
"""Of each panel of the help, by name: the place in `cli.commands`, and the summary."""
