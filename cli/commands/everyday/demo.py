"""`vizpub demo`: from a real trace to answers and figures, as commands of this program."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from vizpub.cli.options import NoLoad
from vizpub.cli.settings import Settings
from vizpub.machine.files import make_folder
from vizpub.model.errors import InputError

_RUN = "gossipsub"
_MESSAGE = (
    "0024080112209e7ccb13d6a2034904a45099860776b46232d6ebd052f815974462cbb17ebc9a0d234ccff6a66682"
)
_FROM = "12D3KooWDe1hUPi5jNa28AFecXc7ZvKNf2P7EVJwK7HPfs8u3deS"
_TO = "12D3KooWBMk9yidG9D28tsMAK8cq2NBCQcrbwbc82SqAtQAajEA2"


@dataclass(frozen=True)
class _Step:
    """A command of the demo and what it shows."""

    title: str
    line: str
    """As typed after `vizpub`; `{out}` is the output directory."""
    asks_neo4j: bool = False


_STEPS = (
    _Step(
        "The overlay, interval by interval (of one second)",
        f"metrics {_RUN} overlay --from 50 --to 57 --columns "
        "network_size,links,degree_mean,clustering_mean,diameter,average_path_length,publications,hit_ratio",
    ),
    _Step(
        "Its topics",
        f"metrics {_RUN} topics --from 60 --to 62 --columns "
        "subscribers,topic_links,components,topic_diameter,publications,duplicates",
    ),
    _Step(
        "Its messages: eligible peers, deliveries, duplicates and delay",
        f"metrics {_RUN} messages --limit 8 --columns "
        "eligible,delivered,receptions,duplicates,hops_max,delay_us_p95",
    ),
    _Step("The subgraph of topic 'alerts' in interval 50", f"topic {_RUN} alerts --at 50"),
    _Step(
        "A shortest path between two peers in interval 80",
        f"path {_RUN} {_FROM} {_TO} --at 80 --layers mesh",
    ),
    _Step("How a message spread in topic 'alerts'", f"message {_RUN} {_MESSAGE}"),
    _Step(
        "In Cypher: who publishes on each topic",
        "cypher 'MATCH (p:Peer {{run: $run}})-[:PUBLISHED]->(m:Message)-[:PUBLISHED_ON]->(t:Topic) "
        "RETURN t.name AS topic, count(m) AS messages, count(DISTINCT p) AS publishers "
        f"ORDER BY topic' -p run={_RUN}",
        asks_neo4j=True,
    ),
    _Step("A file for Gephi", f"export gexf {_RUN} -o {{out}}/overlay.gexf"),
    _Step(
        "Pictures",
        f"plot {_RUN} --kind overlay --topic alerts --at 50 -o {{out}}/overlay.png",
    ),
    _Step("", f"plot {_RUN} network_size links average_path_length -o {{out}}/series.png"),
    _Step("", f"plot {_RUN} --kind coverage -o {{out}}/coverage.png"),
)

_OF_NEO4J = """\
Query in Neo4j Browser: vizpub neo4j browser   (shows the address and the password)
Or on the command line: vizpub query           (lists the queries)
                        vizpub cypher 'MATCH (p:Peer:Hub) RETURN p.run, p.name'
Stop the local Neo4j:   vizpub neo4j stop"""


def demo(
    ctx: typer.Context,
    settings: Settings,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Directory for the Gephi file and the plots."),
    ] = Path("demo"),
    no_load: NoLoad = False,
) -> None:
    """Show what vizpub does, on a real trace of gossipsub.

    The trace has 30 peers, 110 seconds and 64 messages. The command ingests it, starts the local
    Neo4j, loads the run, queries, exports and plots it. If the run exists already, it is only
    queried. With `--no-load`, Neo4j is neither downloaded nor started, and the question in Cypher
    is left out.

    Examples:

    ```
    vizpub demo
    vizpub demo --no-load
    ```
    """
    make_folder(out)
    with as_file(files("vizpub.cli") / "examples" / _RUN) as folder:
        if not folder.is_dir():
            raise InputError("the example trace is not installed", f"looked in {folder}")
        trace = folder.resolve()  # in a checkout it is a link
    ingest = f"ingest {shlex.quote(str(trace))} --run {_RUN}{' --no-load' * no_load}"
    made = "a run and its metrics" if no_load else "a run, its metrics, and a graph in Neo4j"
    first = _Step(f"Ingest a real trace: {made}", ingest)
    steps = (step for step in _STEPS if not (no_load and step.asks_neo4j))
    for step in (first, *steps):
        line = step.line if step is first else step.line.format(out=shlex.quote(str(out)))
        if step.title:
            print(f"\n{step.title}", flush=True)
        print(f"$ vizpub {line}", flush=True)
        arguments = [*settings.as_arguments(), *shlex.split(line)]
        if code := ctx.find_root().command.main(arguments, "vizpub", standalone_mode=False):
            raise typer.Exit(code)
    print(f"""
Look at {out}/overlay.png, series.png and coverage.png; open {out}/overlay.gexf in Gephi.
Your own traces:        vizpub ingest FOLDER --run NAME
See the overlay play:   vizpub explore {_RUN}""")
    if not no_load:
        print(_OF_NEO4J)
