"""`vizpub export bctrace`: a message of a run for netviz."""

from __future__ import annotations

from typing import Annotated

import typer

from vizpub.cli.completion import complete_messages
from vizpub.cli.options import Layers, OutputFile, RunName, comma_list
from vizpub.cli.settings import Settings
from vizpub.cli.terminal.output import open_output
from vizpub.model.wording import amount


def bctrace(
    settings: Settings,
    run: RunName,
    message: Annotated[
        str,
        typer.Option(
            metavar="MESSAGE", help="The message to export.", autocompletion=complete_messages
        ),
    ],
    layers: Layers = None,
    file: OutputFile = None,
) -> None:
    """Write how a message spread as a bctrace (NDJSON), which netviz plays.

    The trace has the peers of that time, their subscriptions to the message's topic, the links of
    the topic (or those without one, if it has none) and all arrivals. No run knows when a copy was
    sent: netviz shows it leave at the time of its arrival.

    Examples:

    ```
    vizpub export bctrace monday --message m17 -o m17.ndjson
    ```
    """
    from vizpub.questions.names import NamedRun
    from vizpub.questions.traces.bctrace import write_bctrace
    from vizpub.runstore.store import open_run

    named = NamedRun(open_run(settings.workspace, run))
    with open_output(file) as out:
        counts = write_bctrace(named, message, out, comma_list(layers))
    settings.say(f"wrote {amount(counts.nodes, 'node')} and {amount(counts.events, 'event')}")
    published = named.publication(named.message_index(message))["interval"]
    if note := named.facts.provisional(published):
        settings.say(f"({note})")
