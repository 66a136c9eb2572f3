"""`vizpub runs summary`: counts of a run, by the definitions of tracestat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vizpub.cli.options import OnlyTopic, Output, RunName
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.formatting import json_safe
from vizpub.cli.terminal.output import OutputRows, open_output, output_format, show_rows

if TYPE_CHECKING:
    from vizpub.questions.sums.tracestat import Tracestat


def summary(
    settings: Settings,
    run: RunName,
    output: Output,
    topic: OnlyTopic = None,
) -> None:
    """Count what a run published, delivered, refused and sent, as libp2p's tracestat does.

    `delivered` counts first arrivals from other peers; with the publishers' deliveries to
    themselves, which tracestat counts too, it is `delivered_and_own`. `delay_ms_p95` is the
    time within which 95 % of the deliveries arrived. `--format json` has the whole
    distribution, and every peer and message. RPCs belong to no topic. Control messages are
    counted by kind.

    Examples:

    ```
    vizpub runs summary monday
    vizpub runs summary monday --topic news --format csv
    vizpub runs summary monday -o summary.json
    ```
    """
    from vizpub.questions.run import Run
    from vizpub.questions.sums.tracestat import GOSSIPSUB, Tracestat, quantiles, totals

    counted = Tracestat(Run.open(settings.workspace, run), topic)
    peers, delays = counted.per_peer(), counted.delays()
    provisional = counted.run.facts.provisional()
    figures = totals(peers) | counted.control() | quantiles(delays)
    if output_format(output) == "json":
        with open_output(output.file) as out:
            out.writelines(_json_lines(counted, figures, peers, delays))
        if output.file:
            settings.say(f"wrote {output.file}")
        if provisional:
            settings.say(f"({provisional})")
        return
    figures = {"peers": figures["peers"], "topics": len(counted.topics), **figures}
    rows = [(name, value, GOSSIPSUB.get(name)) for name, value in figures.items()]
    columns = ("figure", "value", "name in gossipsub")
    show_rows(OutputRows(columns, rows, provisional=provisional), output, settings)


def _json_lines(
    counted: Tracestat,
    figures: dict[str, int | None],
    peers: list[dict[str, Any]],
    delays: list[tuple[int, int]],
) -> Iterator[str]:
    """One object; its messages are written as they are read."""
    from vizpub.questions.sums.tracestat import GOSSIPSUB, distribution

    fields = {
        "run": counted.run.facts.name,
        "topics": counted.topics,
        **figures,
        "gossipsub": {theirs: figures[ours] for ours, theirs in GOSSIPSUB.items()},
        "delays": distribution(delays, figures["published"]),
        "per_peer": peers,
    }
    if counted.run.facts.provisional():
        fields["provisional"] = True
    for name, value in fields.items():
        yield f"{',' if name != 'run' else '{'}\n{_text(name)}: {_text(value)}"
    yield ',\n"per_message": ['
    separator = "\n"
    for batch in counted.per_message():
        for message in batch.to_pylist():
            yield separator + _text(message)
            separator = ",\n"
    yield "\n]}\n"


def _text(value: object) -> str:
    return json_safe(json.dumps(value, ensure_ascii=False))
