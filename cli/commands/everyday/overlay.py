"""`vizpub path`, `topic` and `message`: frequent questions as commands."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from vizpub.cli.commands.everyday.query import ask_query, print_answer
from vizpub.cli.completion import complete_layers, complete_peers, complete_topics
from vizpub.cli.options import (
    Limit,
    Moment,
    OptionalMessage,
    Output,
    RunName,
    comma_list,
    drop_defaults,
    refuse_options,
)
from vizpub.cli.service import querying, run_of_workspace
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import OutputRows, output_format, show_rows
from vizpub.model.errors import UseError
from vizpub.model.run import DUPLICATES
from vizpub.model.wording import amount

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _Ends:
    """The two ends of a path."""

    source: Annotated[str, typer.Argument(metavar="FROM", autocompletion=complete_peers)]
    target: Annotated[str, typer.Argument(metavar="TO", autocompletion=complete_peers)]


def path(
    settings: Settings,
    run: RunName,
    ends: _Ends,
    moment: Moment,
    output: Output,
    every: Annotated[bool, typer.Option("--all", help="Print all shortest paths.")] = False,
) -> None:
    """Find a shortest path of links between two peers at a given time.

    If there is no path, a message says so. In Cypher: `vizpub query RUN shortest-path`.

    Examples:

    ```
    vizpub path monday alice bob --at 12
    vizpub path monday alice bob --at 12.5s --all --format json
    ```
    """
    rows = _paths(settings, run, ends, moment, every=every)
    if output_format(output) in ("table", "md"):
        show_rows(OutputRows(("path", "hop", "peer"), _path_rows(rows)), output, settings)
    else:
        show_rows(OutputRows(("hops", "peers"), rows), output, settings)
    if not rows:
        settings.say(f"no path from '{ends.source}' to '{ends.target}' at that time")


def _paths(
    settings: Settings, run: str, ends: _Ends, moment: Moment, *, every: bool
) -> Sequence[Sequence[Any]]:
    """The hops and peers of each path."""
    if stored := run_of_workspace(settings, run):
        from vizpub.questions import frequent

        between, layers = (ends.source, ends.target), comma_list(moment.layers)
        return frequent.paths(stored, between, moment.at, layers, every=every)
    name = "all-shortest-paths" if every else "shortest-path"
    values = {"from": ends.source, "to": ends.target, **asdict(moment)}
    return ask_query(settings, name, run, values).rows


def _path_rows(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[int, int, str]]:
    for number, (_, peers) in enumerate(rows, start=1):
        yield from ((number, hop, peer) for hop, peer in enumerate(peers))


def topic(
    settings: Settings,
    run: RunName,
    moment: Moment,
    output: Output,
    name: Annotated[
        str | None, typer.Argument(metavar="TOPIC", autocompletion=complete_topics)
    ] = None,
    limit: Limit = 0,
) -> None:
    """Print a topic's links between subscribers, or list the topics.

    The list has the topics with the most subscribers first. `links` counts the links between two
    subscribers, `messages` and `publishers` what was published up to then. `vizpub metrics RUN
    topics` has more for each interval: diameters, components, hit ratios. In Cypher: `vizpub query
    RUN topics`, and `vizpub query RUN topic-subgraph`.

    Examples:

    ```
    vizpub topic monday
    vizpub topic monday --at 12 --layers mesh --limit 10
    vizpub topic monday news --at 12
    vizpub topic monday news --at 12 --layers mesh -o news.csv
    ```
    """
    if not (stored := run_of_workspace(settings, run)):
        from vizpub.graphstore.ask.queries import Limits

        query = "topics" if name is None else "topic-subgraph"
        values = asdict(moment) | {"topic": name}
        print_answer(settings, output, query, run, values, Limits(rows=limit or None))
        return
    from vizpub.questions import frequent

    layers, provisional = comma_list(moment.layers), ""
    if name is None:
        rows = frequent.topics(stored, moment.at, layers)
        interval = stored.clock.interval_of(stored.tick_at(moment.at))
        provisional = stored.facts.provisional(interval)
    else:
        rows = frequent.topic(stored, name, moment.at, layers)
    _show(rows.slice(0, limit or None), output, settings, provisional)


@dataclass(frozen=True)
class _MissedOptions:
    """Choice of the peers that missed messages, and how they are counted."""

    missed: Annotated[
        bool,
        typer.Option(
            "--missed",
            help="Print who never received it and why; without MESSAGE, the reasons of the run.",
        ),
    ] = False
    by: Annotated[
        str | None,
        typer.Option(
            metavar="topic|peer|interval|message",
            help="With --missed and without MESSAGE: count separately by this, or by several: "
            "topic,interval.",
        ),
    ] = None
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="With --missed: only neighbours over links of these layers.",
            autocompletion=complete_layers,
        ),
    ] = None
    limit: Annotated[
        int,
        typer.Option(
            "--limit", metavar="N", min=0, help="With --missed: print at most N rows; 0 = all."
        ),
    ] = 0


def message(
    ctx: typer.Context,
    run: RunName,
    output: Output,
    part: _MissedOptions,
    message: OptionalMessage = None,
) -> None:
    """Print how a message spread, or who missed it and why.

    A table shows the tree of first receptions with delays since the publication; the other formats
    have every reception, with times of the run.

    With --missed, only eligible peers count. The reason is the first of these that applies: the
    peer refused the message; no peer received it; the peer left while it spread; it had no
    neighbours; no neighbour had the message; neighbours had it, and none delivered it. Neighbours
    are those at the publication, over links in either direction.

    Without MESSAGE, --missed counts pairs of a message and an eligible peer that never received
    it, by reason; `messages` and `peers` say how many are in these pairs. `share` is `missed`
    divided by all pairs of the run; with --by, by those of the topic, peer, interval or message.

    In Cypher: `vizpub query RUN dissemination-tree`, and `vizpub query RUN missed-subscribers`.

    Examples:

    ```
    vizpub message monday m17
    vizpub message monday m17 --format csv
    vizpub message monday m17 --missed
    vizpub message monday m17 --missed --layers mesh -o missed.csv
    vizpub message monday --missed --by topic
    ```
    """
    if part.missed:
        _print_missed(ctx, run, message, output, part)
        return
    refuse_options(
        ctx, "how a message spread; it goes with --missed", "--by", "--layers", "--limit"
    )
    if message is None:
        raise UseError(f"name a message; to list them: vizpub metrics {run} messages")
    _print_spread(ctx.obj, run, message, output)


def _print_spread(settings: Settings, run: str, message: str, output: Output) -> None:
    """Print the tree of a message, or its receptions."""
    if stored := run_of_workspace(settings, run):
        from vizpub.questions import frequent

        receptions = frequent.dissemination(stored, message)
        columns, rows, facts = receptions.column_names, _rows(receptions), stored.facts
        published = stored.publication(stored.message_index(message))
        published_us, provisional = published["time_us"], facts.provisional(published["interval"])
    else:
        answer = ask_query(settings, "dissemination-tree", run, {"message": message})
        with querying(settings, run) as neo4j:
            from vizpub.graphstore.gexf.graph_rows import GraphRows

            loaded = GraphRows(neo4j.open_run(run))
            facts, published_us = loaded.facts, loaded.message(message).time_us
        columns, rows = list(answer.columns), [tuple(row) for row in answer.rows]
        provisional = answer.provisional
    if output_format(output) != "table":
        show_rows(OutputRows(tuple(columns), rows, provisional=provisional), output, settings)
        return
    tree = tree_rows([Reception(*row) for row in rows], counts=facts.knows(DUPLICATES))
    timed = [
        (peer, hop, _delay_ms(time_us, published_us), *more) for peer, hop, time_us, *more in tree
    ]
    names = ("peer", "hop", "delay_ms", "duplicates", "subscribed")
    show_rows(OutputRows(names, timed, provisional=provisional), output, settings)


def _print_missed(
    ctx: typer.Context, run: str, message: str | None, output: Output, part: _MissedOptions
) -> None:
    """Print the peers that missed a message, or without one, the reasons of the whole run."""
    settings: Settings = ctx.obj
    if message:
        part = drop_defaults(ctx, part, "--by")
    by = comma_list(part.by) or ()
    if stored := run_of_workspace(settings, run):
        from vizpub.questions.sums.totals import unreported_count

        frame = stored.missed(message, by=by, layers=comma_list(part.layers) or None)
        interval = (
            stored.publication(stored.message_index(message))["interval"] if message else None
        )
        rows = frame.to_arrow().slice(0, part.limit or None)
        _show(rows, output, settings, stored.facts.provisional(interval))
        if not len(frame):
            settings.say("every eligible peer received " + ("it" if message else "every message"))
        if not message and (unreported := unreported_count(stored.stored)):
            settings.say(
                f"{amount(unreported, 'message')} without a reported publication are left out: "
                "their eligible peers are unknown"
            )
    elif message and not by:
        refuse_options(ctx, f"run '{run}', which only Neo4j has, without reasons", "--layers")
        from vizpub.graphstore.ask.queries import Limits

        limits = Limits(rows=part.limit or None)
        print_answer(settings, output, "missed-subscribers", run, {"message": message}, limits)
    else:
        raise UseError(f"the reasons need the run's files, and {settings.place} has none")


def _delay_ms(time_us: int | None, published_us: int | None) -> float | None:
    """Milliseconds since the publication; null = unknown."""
    return None if time_us is None or published_us is None else (time_us - published_us) / 1000


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _show(table: pa.Table, output: Output, settings: Settings, provisional: str = "") -> None:
    rows = replace(OutputRows.of_table(table), provisional=provisional)
    show_rows(rows, output, settings)


class Reception(NamedTuple):
    """One arrival: a row of the query dissemination-tree."""

    hop: int | None
    time_us: int | None
    from_: str | None
    to: str
    first: bool
    subscribed: bool | None


def tree_rows(receptions: Sequence[Reception], *, counts: bool = True) -> Iterator[tuple[Any, ...]]:
    """Rows (peer with its branch of the tree, hop, time_us, duplicates, subscribed), root first.

    A peer is below the peer it received the message from. Peers whose chain does not lead to the
    publisher (an unknown or circular previous hop) are roots too. Without `counts`, that is if
    only first arrivals are reported, `duplicates` is null.
    """
    first = {r.to: r for r in receptions if r.first}
    duplicates = Counter(r.to for r in receptions if not r.first)
    below: dict[str | None, list[str]] = defaultdict(list)
    for reception in first.values():
        below[reception.from_].append(reception.to)
    roots = [peer for peer in below if peer is not None and peer not in first]
    seen: set[str] = set()
    for root in [*roots, *below[None], *first]:
        for peer, branch in _walk_tree(root, below, seen):
            at = first.get(peer)
            facts = (at.hop, at.time_us) if at else (0, None)
            copies = duplicates[peer] if counts else None
            yield branch + peer, *facts, copies, at.subscribed if at else None


def _walk_tree(
    root: str, below: dict[str | None, list[str]], seen: set[str]
) -> Iterator[tuple[str, str]]:
    """Each peer and the branch before it, depth first, without peers in `seen`."""
    stack = [(root, "", "")]
    while stack:
        peer, branch, stem = stack.pop()
        if peer in seen:
            continue
        seen.add(peer)
        yield peer, branch
        children = [child for child in below.get(peer, ()) if child not in seen]
        for place, child in enumerate(reversed(children)):
            last = place == 0
            stack.append(
                (child, stem + ("└─ " if last else "├─ "), stem + ("   " if last else "│  "))
            )
