"""`vizpub compare --fail-if`: conditions on metrics, as a table or as a JUnit report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TextIO
from xml.etree import ElementTree as ET

import typer

from vizpub.cli.completion import JUDGEMENT_FORMATS, complete_judgement_formats
from vizpub.cli.options import Output
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.formatting import estimate_text, printable, round_by_interval
from vizpub.cli.terminal.output import OutputRows, open_output, output_format, show_rows
from vizpub.model.errors import CheckFailed, UseError
from vizpub.model.wording import amount

if TYPE_CHECKING:
    import pyarrow as pa

    from vizpub.analytics.comparison.conditions import Condition

JUNIT = "junit"
_FAILING = ("failed", "unknown")
_Record = dict[str, Any]


@dataclass(frozen=True)
class ConditionOptions:
    """The conditions under which a comparison fails."""

    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Fail if this holds for certain, such as 'hit_ratio < 0.99' or "
            "'delay_us_p95 > 1.1x' (1.1 times the first group's value); repeatable.",
        ),
    ] = None
    fail_if_possible: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Fail if this may hold: the confidence interval does not exclude it; repeatable.",
        ),
    ] = None

    def parse(self) -> list[Condition]:
        """Parse the conditions, those of --fail-if first. Raises: UseError."""
        from vizpub.analytics.comparison.conditions import Condition

        certain = [Condition.parse(text) for text in self.fail_if or ()]
        possible = (Condition.parse(t, fails_if_possible=True) for t in self.fail_if_possible or ())
        return [*certain, *possible]


@dataclass(frozen=True)
class JudgementOutput(Output):
    """Destination and format of the data; JUnit for conditions."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="|".join(JUDGEMENT_FORMATS),
            help="Output format (default: from the suffix of -o, otherwise table); junit is for "
            "conditions.",
            autocompletion=complete_judgement_formats,
        ),
    ] = None


def check_format(output: Output, conditions: Sequence[Condition]) -> None:
    """Check that the format is one of the answer. Raises: UseError."""
    if output_format(output, JUDGEMENT_FORMATS) == JUNIT and not conditions:
        raise UseError(f"{JUNIT} is only for conditions: give --fail-if or --fail-if-possible")


def show_judgements(table: pa.Table, title: str, output: Output, settings: Settings) -> None:
    """Write the judgements of conditions (vizpub.analytics.comparison.conditions).

    `title` is that of a JUnit report. Raises: CheckFailed if a condition fails, or cannot be
    judged.
    """
    from vizpub.analytics.comparison.conditions import NO_INTERVAL_TO_JUDGE

    records = table.to_pylist()
    form = output_format(output, JUDGEMENT_FORMATS)
    if form == JUNIT:
        with open_output(output.file) as out:
            write_junit(records, title, out)
        if output.file:
            settings.say(f"wrote {output.file}")
    else:
        rows = _rows_for_people(records) if form in ("table", "md") else OutputRows.of_table(table)
        show_rows(rows, output, settings)
    for record in records:
        if record["result"] == "possible":
            settings.say(f"note: {sentence(record)}")
    if failing := [sentence(record) for record in records if record["result"] in _FAILING]:
        count = len(failing)
        if any(record["reason"] == NO_INTERVAL_TO_JUDGE for record in records):
            failing.append("compare several runs, or judge values alone with --fail-if-possible")
        raise CheckFailed(f"{count} of {amount(len(records), 'check')} failed", failing)
    settings.say(f"{amount(len(records), 'check')} passed")


def sentence(record: _Record) -> str:
    """A judgement in words.

    "hit_ratio < 0.97x: failed: 0.669 for new, and the limit is 0.887; the difference is -0.218,
    between -0.285 and -0.151 with 95 % confidence"
    """
    about = f"{record['condition']}: {record['result']}"
    if record["value"] is None or record["limit"] is None:
        return f"{about}: {record['reason']}"
    unit = f" {record['unit']}" if record["unit"] not in ("", "share", None) else ""
    value, limit, distance, low, high = _spoken_numbers(record)
    text = f"{about}: {value}{unit} for {record['group']}, and the limit is {limit}{unit}"
    if low is None:
        return f"{text}; {record['reason'] or 'judged by the value of a single run'}"
    between = f"between {low} and {high} with 95 % confidence"
    return f"{text}; the difference is {distance}{unit}, {between}"


def _spoken_numbers(record: _Record) -> list[str | None]:
    """Value, limit, difference and its bounds, with as many digits as its interval supports."""
    low, high = record["low"], record["high"]
    half = 0.0 if low is None else (high - low) / 2
    names = ("value", "limit", "difference", "low", "high")
    return [
        None if record[name] is None else round_by_interval(record[name], half) for name in names
    ]


def _rows_for_people(records: Sequence[_Record]) -> OutputRows:
    columns: tuple[str, ...] = ("condition", "group", "result", "value", "limit", "value - limit")
    rows = [
        (
            *(record[name] for name in columns[:3]),
            *_spoken_numbers(record)[:2],
            estimate_text({**record, "value": record["difference"], "estimate": "difference"}),
            record["unit"],
            record["reason"],
        )
        for record in records
    ]
    columns = (*columns, "unit", "reason")
    if not any(record["reason"] for record in records):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return OutputRows(columns, rows, leaving=("unit", "value - limit", "limit"))


def write_junit(records: Sequence[_Record], title: str, out: TextIO) -> None:
    """Write a JUnit report: a test case for each condition and group.

    A condition that cannot be judged is an error, one that holds a failure.
    """
    counts = {
        "tests": str(len(records)),
        "failures": str(sum(record["result"] == "failed" for record in records)),
        "errors": str(sum(record["result"] == "unknown" for record in records)),
        "skipped": "0",
    }
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": printable(title), **counts})
    suite.extend(_cases(records))
    ET.indent(suites)
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(ET.tostring(suites, encoding="unicode") + "\n")


def _cases(records: Sequence[_Record]) -> Iterator[ET.Element]:
    for record in records:
        names = {"classname": printable(record["group"]), "name": record["condition"], "time": "0"}
        case, text = ET.Element("testcase", names), printable(sentence(record))
        if record["result"] in _FAILING:
            tag = "failure" if record["result"] == "failed" else "error"
            ET.SubElement(case, tag, {"message": text, "type": record["result"]}).text = text
        else:
            ET.SubElement(case, "system-out").text = text
        yield case
