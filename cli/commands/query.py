"""`vizpub query` and `vizpub cypher`: queries to the graph in Neo4j."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.completion import complete_parameters, complete_queries, complete_runs
from cli.options import Limit, Output, command
from cli.service import asking
from cli.settings import Settings
from cli.terminal.output import Rows, show
from model.clock import parse_duration_us
from model.errors import UseError

if TYPE_CHECKING:
    from graphstore.ask.free_text import Stream
    from graphstore.ask.queries import Answer, Limits


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for function in (query, cypher):
        app.command(rich_help_panel="Questions")(command(function))


@dataclass(frozen=True)
class Question:
    """The parameters of a query, and the limits of its answer."""

    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="KEY=VALUE",
            help="A parameter of the query; repeatable.",
            autocompletion=complete_parameters,
        ),
    ] = None
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Stop the query after this time.")
    ] = "30s"
    limit: Limit = 0

    @property
    def values(self) -> dict[str, str]:
        """The parameters by name. Raises: UseError."""
        return parameter_values(self.parameters or ())

    @property
    def limits(self) -> Limits:
        """The limits as the graph store takes them. Raises: UseError."""
        from graphstore.ask.queries import Limits

        return Limits(parse_duration_us(self.timeout) / 1e6, self.limit or None)


def parameter_values(pairs: Sequence[str]) -> dict[str, str]:
    """'k=v' → {'k': 'v'}. Raises: UseError for anything else, and for a key given twice."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UseError(f"'{pair}' is not KEY=VALUE; write for example -p at=12")
        if key.strip() in values:
            raise UseError(f"parameter {key.strip()} is given twice")
        values[key.strip()] = value
    return values


def query(
    settings: Settings,
    question: Question,
    output: Output,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=complete_queries)
    ] = None,
    run: Annotated[str | None, typer.Argument(metavar="RUN", autocompletion=complete_runs)] = None,
) -> None:
    """Run a shipped query on a run; without NAME, list the queries and their parameters.

    Give peers, topics and messages by their names in the source. A time is an interval
    number, `first`, `last`, or a time since the run's start such as 12.5s.

    Examples:

    ```
    vizpub query
    vizpub query runs
    vizpub query overlay monday -p at=12
    vizpub query shortest-path monday -p at=12 -p from=alice -p to=bob --format json
    ```
    """
    if name is None:
        show(_shipped(), output, settings)
        return
    from graphstore.ask.queries import shipped

    shipped(name)
    values = question.values
    named = values.pop("run", None)
    answer(settings, output, name, run or named, values, question.limits)


def _shipped() -> Rows:
    from graphstore.ask.parameters import asked_of_user
    from graphstore.ask.queries import query_names
    from graphstore.ask.queries import shipped as found

    def usage(name: str) -> str:
        asked = asked_of_user(found(name))
        return " ".join(f"[{p.name}]" if p.optional else p.name for p in asked)

    columns = ("query", "parameters", "answers")
    return Rows(columns, [(name, usage(name), found(name).purpose) for name in query_names()])


def answer(
    settings: Settings,
    output: Output,
    name: str,
    run: str | None,
    values: Mapping[str, object],
    limits: Limits | None = None,
) -> None:
    """Print the answer of a shipped query."""
    show_answer(asked(settings, name, run, values, limits), output, settings)


def asked(
    settings: Settings,
    name: str,
    run: str | None,
    values: Mapping[str, object],
    limits: Limits | None = None,
) -> Answer:
    """The answer of a shipped query; parameters that are null are left out."""
    from graphstore.ask.queries import Limits, ask

    given = {key: value for key, value in values.items() if value is not None}
    with asking(settings, run) as neo4j:
        return ask(neo4j.driver, neo4j.database, name, given, run=run, limits=limits or Limits())


def show_answer(answer: Answer | Stream, output: Output, settings: Settings) -> None:
    """Print an answer, and a message if rows were left out."""
    show(Rows(answer.columns, answer.rows), output, settings)
    if answer.more:
        settings.say("(there are more rows; see --limit)")


@dataclass(frozen=True)
class OwnQuestion(Question):
    """As Question, with a row limit by default."""

    limit: Limit = 1000


def cypher(
    settings: Settings,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Cypher, or - to read it from stdin.")
    ],
    question: OwnQuestion,
    output: Output,
) -> None:
    """Run a Cypher query of your own. It can only read.

    All runs share one database: filter by `run`, as the examples do. A parameter that
    is valid JSON is read as JSON, any other as text.

    Examples:

    ```
    vizpub cypher 'MATCH (p:Peer {run: $run}) RETURN p.name, p.first' -p run=monday
    vizpub cypher - --timeout 2m --limit 0 < question.cypher
    ```
    """
    from graphstore.ask.free_text import streaming

    statement = _standard_input() if text == "-" else text
    values: dict[str, Any] = dict(question.values)
    with (
        asking(settings) as neo4j,
        streaming(neo4j.driver, neo4j.database, statement, values, question.limits) as found,
    ):
        show_answer(found, output, settings)


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UseError("standard input is not UTF-8 text") from error
