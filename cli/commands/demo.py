"""`vizpub demo`: the whole way of a real trace, as the commands one would type."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from cli.options import command
from cli.settings import Settings
from model.errors import InputError

RUN = "gossipsub"
_CHECKOUT = Path(__file__).resolve().parents[2] / "examples" / RUN
_MESSAGE = (
    "0024080112209e7ccb13d6a2034904a45099860776b46232d6ebd052f815974462cbb17ebc9a0d234ccff6a66682"
)
_FROM = "12D3KooWDe1hUPi5jNa28AFecXc7ZvKNf2P7EVJwK7HPfs8u3deS"
_TO = "12D3KooWBMk9yidG9D28tsMAK8cq2NBCQcrbwbc82SqAtQAajEA2"


@dataclass(frozen=True)
class Step:
    """A command of the demo and what it is to show."""

    title: str
    line: str
    """As typed after `vizpub`; `{out}` stands for the folder of the pictures."""


STEPS = (
    Step(
        "The overlay, interval by interval (of one second)",
        f"metrics {RUN} overlay --from 50 --to 57 --columns "
        "network_size,links,degree_mean,clustering_mean,diameter,average_path_length,publications,hit_ratio",
    ),
    Step(
        "Its topics",
        f"metrics {RUN} topics --from 60 --to 62 --columns "
        "subscribers,topic_links,components,topic_diameter,publications,duplicates",
    ),
    Step(
        "Its messages: who should have had them, who did, and what it cost",
        f"metrics {RUN} messages --limit 8 --columns "
        "eligible,delivered,receptions,duplicates,hops_max,delay_us_p95",
    ),
    Step("Cypher: the subgraph of topic 'alerts' in interval 50", f"topic {RUN} alerts --at 50"),
    Step(
        "Cypher: a shortest path between two peers in interval 80",
        f"path {RUN} {_FROM} {_TO} --at 80 --layers mesh",
    ),
    Step("Cypher: the way of a message through topic 'alerts'", f"dissemination {RUN} {_MESSAGE}"),
    Step("A file for Gephi", f"export gexf {RUN} -o {{out}}/overlay.gexf"),
    Step(
        "Pictures",
        f"plot {RUN} --kind overlay --topic alerts --at 50 -o {{out}}/overlay.png",
    ),
    Step("", f"plot {RUN} network_size links average_path_length -o {{out}}/series.png"),
    Step("", f"plot {RUN} --kind coverage -o {{out}}/coverage.png"),
)


def register(app: typer.Typer) -> None:
    """Add the command, which calls others of the app."""

    def demo(
        settings: Settings,
        out: Annotated[
            Path,
            typer.Option(
                "--out", metavar="DIR", help="Directory for the Gephi file and the plots."
            ),
        ] = Path("demo"),
    ) -> None:
        """Show what vizpub does on a real trace of gossipsub: 30 peers, 110 seconds, 64 messages.

        Ingests the trace, starts the local Neo4j, loads the run, queries, exports and
        plots it. A second demo reuses the run and only queries it.

        Examples:

        ```
        vizpub demo
        ```
        """
        _demonstrate(app, settings, out)

    app.command("demo", rich_help_panel="Set-up")(command(demo))


def _demonstrate(app: typer.Typer, settings: Settings, out: Path) -> None:
    commands = typer.main.get_command(app)
    out.mkdir(parents=True, exist_ok=True)
    for step in _steps(out):
        if step.title:
            print(f"\n{step.title}", flush=True)
        print(f"$ vizpub {step.line}", flush=True)
        arguments = [*settings.as_arguments(), *shlex.split(step.line)]
        if code := commands.main(arguments, "vizpub", standalone_mode=False):
            raise typer.Exit(code)
    _say_what_next(out)


def _steps(out: Path) -> Iterator[Step]:
    ingest = f"ingest {shlex.quote(str(_trace()))} --run {RUN}"
    yield Step("A real trace becomes a run, its metrics, and a graph in Neo4j", ingest)
    for step in STEPS:
        yield Step(step.title, step.line.format(out=shlex.quote(str(out))))


def _trace() -> Path:
    """The shipped trace, in a checkout or in an installed package. Raises: InputError."""
    if _CHECKOUT.is_dir():
        return _CHECKOUT
    shipped = files("cli").joinpath("examples", RUN)
    with as_file(shipped) as folder:
        if folder.is_dir():
            return folder
    raise InputError("the example trace is not installed", f"looked in {_CHECKOUT}")


def _say_what_next(out: Path) -> None:
    print(f"""
Look at {out}/overlay.png, series.png and coverage.png; open {out}/overlay.gexf in Gephi.
Ask in Neo4j Browser:   vizpub neo4j browser   (shows the address and the password)
Or here:                vizpub query           (lists the queries)
                        vizpub cypher 'MATCH (p:Peer:Hub) RETURN p.run, p.name'
Your own traces:        vizpub ingest FOLDER --run NAME
Stop the local Neo4j:   vizpub neo4j stop""")
