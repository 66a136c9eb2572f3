"""`vizpub query` and `vizpub cypher`: queries to the graph in Neo4j."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizpub.cli.completion import (
    complete_parameters,
    complete_queries,
    complete_values,
)
from vizpub.cli.options import (
    Layers,
    Limit,
    OptionalRun,
    Output,
    Timeout,
    drop_defaults,
    refuse_options,
)
from vizpub.cli.service import querying
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, show_rows
from vizpub.machine.files import text_argument
from vizpub.machine.process import bounded_memory
from vizpub.model.clock import parse_duration_us
from vizpub.model.errors import UnknownName, UseError
from vizpub.model.wording import amount

if TYPE_CHECKING:
    from vizpub.cypher import Parameter, Statement
    from vizpub.graphstore.ask.free_text import Stream
    from vizpub.graphstore.ask.queries import Answer, Limits


COMMANDS = {
    "shortest-path": "path",
    "all-shortest-paths": "path",
    "topics": "topic",
    "topic-subgraph": "topic",
    "dissemination-tree": "message",
    "missed-subscribers": "message",
    "runs": "runs list",
}
"""Commands that answer the same questions as queries."""
_OF_ANSWERS = ("--param", "--timeout", "--at", "--layers")
"""Options that only an answer has."""
_MEMORY = 2 * 2**30
"""Bytes that an answer may take: not every server bounds a row."""


@dataclass(frozen=True)
class QueryOptions:
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
    timeout: Timeout = "30s"
    limit: Limit = 0

    @property
    def values(self) -> dict[str, str]:
        """The parameters by name. Raises: UseError."""
        return parameter_values(self.parameters or ())

    @property
    def limits(self) -> Limits:
        """The limits as the graph store takes them. Raises: UseError."""
        from vizpub.graphstore.ask.queries import Limits

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


@dataclass(frozen=True)
class _NamedQueryOptions(QueryOptions):
    """A query's options with its time and the layers of the links that count."""

    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The time of the query: its parameter `at`."),
    ] = None
    layers: Layers = None

    @property
    def values(self) -> dict[str, str]:
        """The parameters by name, with `at` and `layers` if they are chosen. Raises: UseError."""
        parameters = super().values
        chosen = {"at": self.at, "layers": self.layers}
        options = {name: value for name, value in chosen.items() if value is not None}
        for name in options.keys() & parameters.keys():
            raise UseError(f"parameter {name} is given twice")
        return parameters | options


def query(
    ctx: typer.Context,
    question: _NamedQueryOptions,
    output: Output,
    run: OptionalRun = None,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME|FILE.cypher", autocompletion=complete_queries)
    ] = None,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="VALUE", autocompletion=complete_values)
    ] = None,
) -> None:
    """Run a shipped query, or your own from a file, or list the queries.

    Give values in the order of the list, or by name with -p; the time also with --at. Peers, topics
    and messages have their names in the source. A time is an interval number, `first`, `last`, or a
    time since the run's start such as 12.5s. `vizpub query NAME` explains one query.

    Your file begins with a header like those in cypher/queries/. Queries can only read. The list
    leaves out the queries whose answers are those of a command: `vizpub path`, `vizpub topic`,
    `vizpub message` and `vizpub runs list`. They run as well, on the copy in Neo4j
    (docs/queries.md).

    Examples:

    ```
    vizpub query
    vizpub query shortest-path
    vizpub query monday overlay 12
    vizpub query monday shortest-path alice bob --at 12 --layers mesh --format json
    vizpub query monday history -p mode=as-of -p at=12 -p kinds=links
    vizpub query monday mine.cypher 12
    vizpub query runs
    ```
    """
    from vizpub.graphstore.ask.queries import query_names, shipped_query

    settings: Settings = ctx.obj
    if run is None or name is None:
        _answer_word(ctx, question, output, run)
    elif name.endswith(".cypher"):
        _answer_own(ctx, question, output, run, Path(name), values or [])
    else:
        if name not in query_names() and run in query_names():
            raise UseError(f"the run comes first: vizpub query {name} {run}")
        arguments = _bind_values(ctx, shipped_query(name), values or [], question)
        print_answer(settings, output, name, run, arguments, question.limits)


def _answer_word(
    ctx: typer.Context,
    question: _NamedQueryOptions,
    output: Output,
    word: str | None,
) -> None:
    """`vizpub query WORD`: a query that needs no run is answered, another one explained; for a run,
    or without a word, the queries are listed.
    """
    from vizpub.graphstore.ask.queries import query_names, shipped_query
    from vizpub.runstore.store import run_names

    settings: Settings = ctx.obj
    if word is not None and word not in query_names():
        if word not in run_names(settings.workspace):
            raise UnknownName("run or query", word, query_names(), "vizpub query")
        word = None
    if word is None:
        refuse_options(ctx, "the list of queries", *_OF_ANSWERS)
        show_rows(_list_queries().first(question.limit), output, settings)
    elif shipped_query(word).parameters:
        refuse_options(ctx, f"an explanation; the answer is: vizpub query RUN {word}", *_OF_ANSWERS)
        show_rows(_explain_query(shipped_query(word)).first(question.limit), output, settings)
    else:
        question = drop_defaults(ctx, question, "--at", "--layers")
        print_answer(settings, output, word, None, question.values, question.limits)


def _bind_values(
    ctx: typer.Context, query: Statement, words: Sequence[str], question: _NamedQueryOptions
) -> dict[str, str]:
    """The values by name: those without one are in the order of the header, without `at` if that
    has its option.
    """
    from vizpub.graphstore.ask.parameters import user_parameters

    names = [parameter.name for parameter in user_parameters(query)]
    others = [f"--{option}" for option in ("at", "layers") if option not in names]
    question = drop_defaults(ctx, question, *others)
    for option in ("at", "layers"):
        if getattr(question, option) is not None and option not in names:
            raise UseError(
                f"--{option} does not apply to query {query.name}: no parameter {option}"
            )
    order = [name for name in names if name != "at" or question.at is None]
    if len(words) > len(order):
        takes = " ".join(order) or "none"
        most = amount(len(order), "value")
        raise UseError(f"query {query.name} takes {most}, not {len(words)}: {takes}")
    placed, by_name = dict(zip(order, words, strict=False)), question.values
    for twice in placed.keys() & by_name.keys():
        raise UseError(f"parameter {twice} is given twice")
    return placed | by_name


def _answer_own(
    ctx: typer.Context,
    question: _NamedQueryOptions,
    output: Output,
    run: str,
    file: Path,
    words: Sequence[str],
) -> None:
    from vizpub.graphstore.ask.own import open_own_stream, read_query

    statement = read_query(file)
    arguments = _bind_values(ctx, statement, words, question)
    with (
        querying(ctx.obj, run) as neo4j,
        open_own_stream(
            neo4j.driver, neo4j.database, statement, arguments, run, question.limits
        ) as stream,
    ):
        show_answer(stream, output, ctx.obj)


def _list_queries() -> OutputRows:
    from vizpub.graphstore.ask.parameters import user_parameters
    from vizpub.graphstore.ask.queries import query_names, shipped_query

    queries = (shipped_query(name) for name in query_names() if name not in COMMANDS)
    rows = [
        (query.name, " ".join(map(_usage, user_parameters(query))), query.purpose)
        for query in queries
    ]
    return OutputRows(("query", "parameters", "answers"), rows)


def _usage(parameter: Parameter) -> str:
    return f"[{parameter.name}]" if parameter.optional else parameter.name


def _explain_query(query: Statement) -> OutputRows:
    """The parameters of a query, and the columns of its answer."""
    from vizpub.graphstore.ask.parameters import user_parameters

    takes = [
        (
            _usage(p),
            "time" if p.type == "tick" else p.type,
            p.meaning + (f"; {p.default} if left out" if p.default else ""),
        )
        for p in user_parameters(query)
    ]
    gives = [(column.name, "answer", column.meaning) for column in query.columns]
    return OutputRows((query.name, "type", "meaning"), [*takes, *gives])


def print_answer(
    settings: Settings,
    output: Output,
    name: str,
    run: str | None,
    values: Mapping[str, object],
    limits: Limits | None = None,
) -> None:
    """Print the answer of a shipped query."""
    result = ask_query(settings, name, run, values, limits)
    show_answer(result, output, settings, result.provisional)


def ask_query(
    settings: Settings,
    name: str,
    run: str | None,
    values: Mapping[str, object],
    limits: Limits | None = None,
) -> Answer:
    """The answer of a shipped query; parameters that are null are left out."""
    from vizpub.graphstore.ask.queries import Limits, ask

    parameters = {key: value for key, value in values.items() if value is not None}
    limits = limits or Limits()
    with querying(settings, run) as neo4j, bounded_memory(_MEMORY):
        return ask(neo4j.driver, neo4j.database, name, parameters, run=run, limits=limits)


def show_answer(
    answer: Answer | Stream, output: Output, settings: Settings, provisional: str = ""
) -> None:
    """Print an answer, and a message if rows were left out."""
    show_rows(OutputRows(answer.columns, answer.rows, provisional=provisional), output, settings)
    if answer.more:
        settings.say("(there are more rows; see --limit)")


@dataclass(frozen=True)
class CypherOptions(QueryOptions):
    """A query's options with a row limit by default."""

    limit: Limit = 1000


def cypher(
    settings: Settings,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT|FILE|-", help="Cypher, a file with it, or - for stdin."),
    ],
    question: CypherOptions,
    output: Output,
) -> None:
    """Run your own Cypher query, which can only read.

    All runs share one database: filter by `run`, as the examples do. A parameter that
    is valid JSON is read as JSON, any other one as text.

    Examples:

    ```
    vizpub cypher 'MATCH (p:Peer {run: $run}) RETURN p.name, p.first' -p run=monday
    vizpub cypher question.cypher --timeout 2m --limit 0
    vizpub cypher - --format csv < question.cypher
    ```
    """
    from vizpub.graphstore.ask.free_text import open_stream

    statement = text_argument(text, ".cypher")
    values: dict[str, Any] = dict(question.values)
    with (
        querying(settings) as neo4j,
        bounded_memory(_MEMORY),
        open_stream(neo4j.driver, neo4j.database, statement, values, question.limits) as stream,
    ):
        for warning in stream.warnings:
            settings.say(f"Neo4j: {warning}", "warning")
        show_answer(stream, output, settings)
