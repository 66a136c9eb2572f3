"""What a run is and what was left out of it, on one screen."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.options import Output
from cli.settings import Settings
from cli.terminal.output import Rows, output_format, show

if TYPE_CHECKING:
    from runstore.store import StoredRun


def show_summary(run: StoredRun, output: Output, settings: Settings) -> None:
    """The run as facts and values; in JSON, which nests, its whole run.json."""
    from runstore.summary import facts_for_people

    if output_format(output) in ("json", "jsonl"):
        show(Rows.of_records([asdict(run.manifest)]), output, settings)
    else:
        show(Rows(("fact", "value"), list(facts_for_people(run))), output, settings)
