"""`vizpub runs settle`: rebuilds a run from all of its files."""

from __future__ import annotations

from dataclasses import dataclass

from vizpub.cli.commands.everyday.ingest import OwnMetrics, show_ingested
from vizpub.cli.commands.neo4j.load import load_stored
from vizpub.cli.options import Master, NoLoad, Output, RunName
from vizpub.cli.service import LoadOptions, remove_stale
from vizpub.cli.settings import Settings


@dataclass(frozen=True)
class SettleOptions(LoadOptions):
    """Options for the run that is rebuilt."""

    metric: OwnMetrics = None
    no_load: NoLoad = False
    master: Master = None


def settle(
    settings: Settings,
    run: RunName,
    options: SettleOptions,
    output: Output,
) -> None:
    """Rebuild a run from all of its files, with late reports.

    An append leaves out and counts reports of intervals that the run has, and anything about final
    messages.
    This command ingests all files of the run again, with the run's own options, beside the old run,
    which it then replaces in one step. Give the run's own metrics again (--metric).

    Examples:

    ```
    vizpub runs settle live
    ```
    """
    from vizpub.ingest.measures.own import load_own_metrics
    from vizpub.ingest.pipeline import settle_run
    from vizpub.runstore.store import open_run

    with settings.progress() as progress:
        stored = open_run(settings.workspace, run)
        metrics = load_own_metrics(options.metric or ())
        outcome = settle_run(stored, metrics, options.master, progress)
    show_ingested(outcome.run, output, settings)
    settings.say(outcome.account.summary_line())
    if options.no_load:
        remove_stale(settings, outcome.run)
    else:
        load_stored(settings, outcome.run, options)
