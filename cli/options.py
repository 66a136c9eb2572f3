"""Options that several commands share, and groups of options as dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from vizpub.cli.completion import (
    FORMATS,
    complete_attributes,
    complete_formats,
    complete_layers,
    complete_messages,
    complete_runs,
    complete_topics,
)
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.help import RARE
from vizpub.model.clock import UNITS_US, Clock, check_window, parse_duration_us
from vizpub.model.errors import OutOfRange, UnknownName, UseError
from vizpub.model.sizes import parse_size

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from vizpub.questions.run import Run

Options = TypeVar("Options", bound="DataclassInstance")


def check_duration(param: typer.CallbackParam, value: str | None) -> str | None:
    """The duration itself. Raises: UseError naming the option."""
    return _check(parse_duration_us, param, value)


def check_unit(param: typer.CallbackParam, value: str | None) -> str | None:
    """The duration of a unit, 'ms' as '1ms'. Raises: UseError naming the option."""
    return check_duration(param, f"1{value}" if value in UNITS_US else value)


def check_size(param: typer.CallbackParam, value: str | None) -> str | None:
    """The size itself. Raises: UseError naming the option."""
    return _check(parse_size, param, value)


def _check(
    parse: Callable[[str], object], param: typer.CallbackParam, value: str | None
) -> str | None:
    try:
        if value is not None:
            parse(value)
    except UseError as error:
        raise UseError(f"{param.opts[0]}: {error}") from None
    return value


RunName = Annotated[str, typer.Argument(metavar="RUN", autocompletion=complete_runs)]
OptionalRun = Annotated[str | None, typer.Argument(metavar="RUN", autocompletion=complete_runs)]
OptionalMessage = Annotated[
    str | None, typer.Argument(metavar="MESSAGE", autocompletion=complete_messages)
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Group by this attribute of peers, such as client; some tables also take topic, "
        "peer or size.",
        autocompletion=complete_attributes,
    ),
]
OnlyTopic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Include only this topic.",
        autocompletion=complete_topics,
    ),
]
Layers = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…", help="Include only links of these layers.", autocompletion=complete_layers
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Spark master (default: this machine).",
        rich_help_panel=RARE,
    ),
]
MOST_NUMBER = 2**63 - 1
"""What tables, files and other programs take for a whole number, whatever an option means."""
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=0, help="Print at most N rows; 0 = all.")
]
Timeout = Annotated[
    str,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="Stop the query after this time.",
        callback=check_duration,
    ),
]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout."),
]
NoLoad = Annotated[bool, typer.Option("--no-load", help="Do not load the run into Neo4j.")]
NoBetweenness = Annotated[
    bool,
    typer.Option(
        "--no-betweenness",
        help="Leave out betweenness, the most expensive metric.",
        rich_help_panel=RARE,
    ),
]
GapTolerance = Annotated[
    int,
    typer.Option(
        "--gap-tolerance",
        metavar="N",
        min=0,
        help="Bridge up to N missing reports of a peer.",
        rich_help_panel=RARE,
    ),
]
CollectorUrl = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="URL of the run at a collector elsewhere."),
]
OpenBrowser = Annotated[
    bool | None,
    typer.Option("--open/--no-open", help="Open a web browser (default: only in a terminal)."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(frozen=True)
class Output:
    """Destination and format of the data."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="|".join(FORMATS),
            help="Output format (default: from the suffix of -o, otherwise table).",
            autocompletion=complete_formats,
        ),
    ] = None
    file: OutputFile = None


@dataclass(frozen=True)
class Moment:
    """A point in time, and the layers of the overlay to include."""

    at: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Interval number, 'first', 'last', a time such as 12.5s, or a wall-clock time.",
        ),
    ] = "last"
    layers: Layers = None


@dataclass(frozen=True)
class Window:
    """The intervals to include."""

    first: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="First interval, or a time.")
    ] = None
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Last interval (inclusive), or a time."),
    ] = None

    def intervals(self, clock: Clock, epoch: str | None = None) -> tuple[int | None, int | None]:
        """First and last interval; null = no limit. `epoch` as in Clock.parse_at.

        Raises: OutOfRange, UseError.
        """
        first, last = (
            None if text is None else clock.interval_of(clock.parse_at(text, epoch))
            for text in (self.first, self.last)
        )
        check_window(first, last)
        return first, last

    def clip(self, clock: Clock, epoch: str | None) -> tuple[int, int] | None:
        """First and last interval of a run in the window; null = the window has no limit.

        Raises: OutOfRange where the run has none; UseError.
        """
        ends = self.intervals(clock, epoch)
        if ends == (None, None):
            return None
        first, last = clock.clip(*ends)
        if first > last:
            raise OutOfRange("window", f"{first} to {last}", clock.describe_range())
        return first, last


def correct_runs(
    runs: Sequence[Run],
    window: Window,
    settings: Settings,
    reference: str | None = None,
) -> list[Run]:
    """The runs with clocks corrected by the messages of a window; say what is corrected.

    Raises: OutOfRange, UseError; as Run.clocks.
    """
    from vizpub.questions.corrected import CorrectedRun
    from vizpub.questions.run import Where

    wheres = [Where(*window.intervals(run.clock, run.facts.epoch)) for run in runs]
    corrected = [
        CorrectedRun.of(run, where, reference) for run, where in zip(runs, wheres, strict=True)
    ]
    for run in corrected:
        settings.say(f"({f'{run.facts.name}: ' if len(runs) > 1 else ''}{run.note})")
    return [*corrected]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Turn a function with plain arguments into a command.

    A parameter that is a dataclass becomes one option per field; `Settings` is taken from
    the global options, and `ctx` is the context of the call.
    """
    parameters = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: p.annotation
        for name, p in parameters.items()
        if is_dataclass(p.annotation) and p.annotation is not Settings
    }

    @wraps(function)
    def run_command(ctx: typer.Context, **values: Any) -> None:
        for name, value in values.items():
            if isinstance(value, int) and abs(value) > MOST_NUMBER:
                raise UseError(f"--{name.replace('_', '-')} {value}: the maximum is {MOST_NUMBER}")
        built = {
            name: group(**{f.name: values.pop(f.name) for f in fields(group)})
            for name, group in groups.items()
        }
        if "settings" in parameters:
            built["settings"] = ctx.obj
        if "ctx" in parameters:
            built["ctx"] = ctx
        function(**values, **built)

    shown = [p for p in parameters.values() if p.name not in {*groups, "settings", "ctx"}]
    for group in groups.values():
        hints = get_type_hints(group, include_extras=True)
        arguments = inspect.signature(group).parameters
        shown += [
            arguments[f.name].replace(annotation=_as_option(hints[f.name])) for f in fields(group)
        ]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in shown]
    signature = inspect.Signature([context, *keyword_only])
    run_command.__signature__ = signature  # type: ignore[attr-defined]
    return run_command


def _as_option(hint: Any) -> Any:
    """An option for a type with msgspec metadata; other types are options already."""
    notes = [note for note in getattr(hint, "__metadata__", ()) if hasattr(note, "description")]
    if not notes:
        return hint
    from vizpub.simulators.engine.parameters import MOST

    (help_text,) = [note.description for note in notes if note.description]
    kind, notes, optional = _without_none(get_args(hint)[0], notes)
    metavar = _metavar(kind, notes)
    option = typer.Option(
        help=help_text,
        min=next((note.ge for note in notes if note.ge is not None), None),
        # The most of any count goes without saying; what checks the value says it.
        max=next((note.le for note in notes if note.le not in (None, MOST)), None),
        metavar=f"{metavar}|none" if metavar and optional else metavar,
        parser=_number_or_none if optional and kind is int else None,
    )
    return Annotated[kind | None if optional else kind, option]


def _without_none(kind: Any, notes: list[Any]) -> tuple[Any, list[Any], bool]:
    """A type without `| None` and metadata, all of its metadata, and whether it may be None."""
    optional = get_origin(kind) in (Union, UnionType)
    members = [m for m in get_args(kind) if m is not NoneType] if optional else [kind]
    (inner,) = members
    if hasattr(inner, "__metadata__"):
        return get_args(inner)[0], [*notes, *inner.__metadata__], optional
    return inner, notes, optional


def _metavar(kind: Any, notes: list[Any]) -> str | None:
    """The word for the value in the help; null = the name of the option."""
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if any(note.pattern for note in notes):
        return "DURATION"
    return {int: "N", float: "X"}.get(kind)


def _number_or_none(text: Any) -> int | None:
    """Parse a whole number, or 'none' as specs of the world have it. Raises: BadParameter."""
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a whole number or none") from None


def given_options(ctx: typer.Context) -> Iterator[str]:
    """The options and arguments of the command line, as its help writes them.

    Defaults of the environment and the configuration file are not among them: each holds for the
    calls that it applies to.
    """
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            name = max(parameter.opts, key=len)
            yield name if name.startswith("-") else str(parameter.metavar).rstrip(".")


def drop_defaults(ctx: typer.Context, options: Options, *names: str) -> Options:
    """The options, those that do not apply to this call as if neither the file nor the environment
    had set them. Those on the command line stay, so that they are refused.
    """
    dropped = {*names}.difference(given_options(ctx))
    chosen = {p.name for p in ctx.command.params if dropped & {*p.opts}}
    return replace(options, **{f.name: f.default for f in fields(options) if f.name in chosen})


def refuse_options(ctx: typer.Context, use: str, *names: str) -> None:
    """Check that none of the options is on the command line. Raises: UseError."""
    for option in given_options(ctx):
        if option in names:
            raise UseError(f"{option} does not apply to {use}")


def match_runs(text: str, names: Sequence[str]) -> list[str]:
    """The names that match a pattern; a name is itself. Raises: UnknownName if there are none."""
    if not any(character in text for character in "*?["):
        return [text]
    if matches := [name for name in names if fnmatchcase(name, text)]:
        return matches
    raise UnknownName("run like", text, names, "vizpub runs list")


def comma_list(text: str | None) -> tuple[str, ...] | None:
    """'a, b' → ('a', 'b'); nothing → null. Raises: UseError if an item is empty."""
    if text is None:
        return None
    items = tuple(item.strip() for item in text.split(","))
    if not all(items):
        raise UseError(f"'{text}' is not a list of names; write for example a,b")
    return items
