"""The stages of an ingest, in the order in which `run_stages` runs them.

Each makes tables from those of earlier stages, by the texts in `ingest/sql` and `analytics/sql`, in
Spark tasks. One task numbers the names. Periods and events have a task for each part of the folded
tables, because all rows of a peer are in one part; messages have a task for each range of their
numbers, and metrics one for each block of intervals. Unknown tables are not made.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pyarrow.compute as pc

from vizpub.analytics.messages import message_fold
from vizpub.analytics.messages.message_fold import MessageFold
from vizpub.analytics.steps import Step, view_step
from vizpub.ingest.folding import fold_input
from vizpub.ingest.inputs.attributes import NEW_ATTRIBUTES, read_again, side_table
from vizpub.ingest.inputs.files import check_unchanged
from vizpub.ingest.inputs.inventory import check_layers
from vizpub.ingest.job import Job, Stage
from vizpub.ingest.measures import metrics
from vizpub.ingest.retention import retain
from vizpub.ingest.sources.times import ALONE, TOO_FAR
from vizpub.ingest.tasks import staged
from vizpub.ingest.tasks.fold import refusal_summary
from vizpub.ingest.tasks.staged import ingest_step
from vizpub.ingest.tasks.steps import StepInput, TaskBlock
from vizpub.model.clock import OPEN
from vizpub.model.columns import Table
from vizpub.model.errors import InputError, NeedsSettling
from vizpub.model.run import DUPLICATES
from vizpub.model.tables import ATTRIBUTES, PEERS, PRESENCE, PUBLICATIONS, REJECTIONS, TOPICS, table
from vizpub.model.wording import amount
from vizpub.runstore.manifest import LATE_MESSAGES
from vizpub.runstore.store import StoredRun

ONLY_IN_ATTRIBUTES = "peers that only files of attributes have"
"""Note that counts them."""
_ROWS_AT_ONCE = 2_000_000
"""Most arrivals that one task sorts."""


def run_stages(job: Job) -> None:
    """Run all stages that are not done yet.

    Raises: InputError, UseError and UnknownName for input or options that cannot be used.
    """
    job.run_stage(READ)
    if job.plan.is_idle and job.base and job.manifest.attribute_files != job.base.attribute_files:
        raise NeedsSettling(job.base.name, NEW_ATTRIBUTES)
    if job.plan.is_idle or not job.small:  # a small input is looked at again in the end
        _check_inputs(job)
    if job.plan.is_idle:
        job.commit_unchanged()
        return
    for stage in (NAMES, PERIODS, MESSAGES, METRICS):
        job.run_stage(stage)
    finish_run(job)


def _read_input(job: Job) -> None:
    """Read the input into the source's tables and the quarantine, and describe the run."""
    try:
        fold_input(job)
    except Exception:  # of any kind: a file that has gone meanwhile is the cause
        _check_inputs(job)
        raise
    description = job.source.describe(job.manifest.totals, job.options)
    _check_refusals(job)
    job.plan.check_facts(description.unknown)
    job.update(
        **vars(description) | {"notes": dict(description.notes), "totals": dict(description.totals)}
    )
    if job.measuring.layers and job.base is None and job.source.layers(job.files) is None:
        parts = [part.selected_rows for part in job.folded_tables().get("folded/links", ())]
        batches = (rows for part in parts for rows in part.to_batches(columns=["layer"]))
        layers = {layer for rows in batches for layer in pc.unique(rows["layer"]).to_pylist()}
        check_layers(job.measuring.layers, layers)


def _check_refusals(job: Job) -> None:
    """Note how many records were refused.

    Raises: InputError if most were: probably the source is the wrong one, or the program that
    wrote the input has a fault.
    """
    if not (refused := job.refusals.total()):
        return
    reasons, records = refusal_summary(job.refusals), amount(job.records_seen, "record")
    message = f"refused {refused:,} of {records}: {reasons}"
    # Of an append, all may be of a wrong clock.
    odd = refused - sum(job.refusals[why] for why in (ALONE, TOO_FAR))
    if 2 * odd > job.records_seen and not job.request.keep_going:
        source = job.manifest.source
        raise InputError(
            message, f"check whether the source is '{source}'; --keep-going ingests the rest"
        )
    job.note(message)


def _check_inputs(job: Job) -> None:
    """Check that no file has changed since it was inspected. Raises: InputError."""
    check_unchanged({file.path: file.stamp for file in job.files if file.stamp})


def _observing_steps(job: Job) -> tuple[Step, ...]:
    """Return the steps from folded tables to observed ones."""
    observed = job.observed_tables
    texts = {name: cast(str, getattr(observed, name)) for name in sorted(observed.known_tables)}
    if job.base:
        texts["names"] = _WITHOUT_FINAL.format(names=texts["names"])
    return *observed.functions, *(
        view_step(f"observed/{name}", text) for name, text in texts.items()
    )


_WITHOUT_FINAL = """
    FROM ({names})
    WHERE kind <> 'message' OR name NOT IN (
        SELECT name FROM staged.named_again WHERE message < getvariable('first_open')
    )
"""


def _number_names(job: Job) -> None:
    """Number peers, topics and messages by their names, and make presence."""
    job.update(boundary=job.plan.find_boundary())
    if late := job.plan.late_messages():
        job.update(notes={**job.manifest.notes, LATE_MESSAGES: late})
    optional = {
        "publications": staged.MESSAGES,
        "presence": PRESENCE,
        "attributes": ATTRIBUTES,
    }
    makes = [PEERS, TOPICS, *_tables_observed(job, optional)]
    texts = (
        ingest_step(name) for name in ("peers", "topics", "messages", "presence", "attributes")
    )
    side_rows = side_table(read_again(job.manifest.attribute_files), job.clock, job.manifest.epoch)
    tables = {**job.folded_tables(), "side/attributes": [StepInput(side_rows)]}
    if side_rows.num_rows:
        makes = list(dict.fromkeys([*makes, ATTRIBUTES]))
    steps = [*_observing_steps(job), *texts]
    job.make_tables(steps, makes, [TaskBlock(job.step_constants("all"), tables)])


def _make_periods(job: Job) -> None:
    """Make periods maximal and clip them to the presence of their peers; number events."""
    optional = {name: table(name) for name in _BY_PEER}
    optional |= {
        "unreported": staged.UNREPORTED,
        "publications": staged.CLAIMS,
        "receptions": staged.ARRIVALS,
    }
    makes = [*_tables_observed(job, optional)]
    if "links" in job.observed_tables.known_tables:
        makes.append(table("dangling_links"))
    if job.is_known("rejections") and "rejections" in job.observed_tables.known_tables:
        makes.append(REJECTIONS)
    stays_text = "FROM presence" if "presence" in job.observed_tables.known_tables else _EVERYBODY
    stay_tables = ("presence",) if "presence" in job.observed_tables.known_tables else ("peers",)
    stay = Step("ingest/stages.py", stays_text, "stays", whole=stay_tables)
    texts = (ingest_step(name) for name in ("mine", *_TEXTS))
    job.make_tables([*_observing_steps(job), stay, *texts], makes, _blocks_of_parts(job))


_BY_PEER = ("links", "subscriptions", "roles", "traffic", "control", "gauges")
_TEXTS = (
    *("links", "clipped_links", "dangling_links", "subscriptions", "roles"),
    *("traffic", "control", "gauges", "unreported", "claims", "arrivals", "rejections"),
)
_EVERYBODY = "SELECT peer, -open_end() AS valid_from, open_end() AS valid_to FROM peers"
"""Stays for unknown presence: nothing is clipped."""


def _tables_observed(job: Job, tables: dict[str, Table]) -> list[Table]:
    """Return the tables of which the source knows the observed table that is their key."""
    return [table for name, table in tables.items() if name in job.observed_tables.known_tables]


def _blocks_of_parts(job: Job) -> list[TaskBlock]:
    """Return a block for each part of the folded tables; the last block of an append has the rows
    that earlier ingests kept.
    """
    files = job.parts
    if len(files) <= 1:
        return [TaskBlock(job.step_constants("all"), job.folded_tables())]
    some = job.step_constants("some")
    blocks = [TaskBlock(some, job.folded_tables(file)) for file in files]
    if job.base:
        nothing = {name: [rows[0].without_rows] for name, rows in job.folded_tables().items()}
        carried = {f"folded/{name}": job.plan.carried_rows(name) for name in job.source.carried}
        names = {"folded/names": job.folded_tables()["folded/names"]}
        rest = nothing | {name: rows for name, rows in carried.items() if rows} | names
        blocks.append(TaskBlock(job.step_constants("rest"), rest))
    return blocks


def _make_messages(job: Job) -> None:
    """Make publications, missed, metrics/messages, and receptions with `first`, `subscribed`,
    `eligible` and `hop`.
    """
    if staged.CLAIMS.name not in job.tables:
        return
    follow = MessageFold(
        staged.ARRIVALS.name in job.tables,
        "subscriptions" in job.tables,
        job.is_known(DUPLICATES),
        sampled_since=job.clock.first if job.clock.ticks_per_interval == 1 else None,
        own=job.measuring.measures.own,
        rejections_known="rejections" in job.tables,
    )
    followed = Step(
        "analytics/messages/message_fold.py", "", "", whole=("message_rows",), fold=follow
    )
    chosen = [ingest_step("publications"), ingest_step("message_rows"), followed]
    earlier = job.base.arrival_capabilities if job.base else None

    def keep(summaries: Sequence[str]) -> None:
        each = map(json.loads, summaries)
        job.update(arrival_capabilities=message_fold.join_capabilities([earlier, *each]))

    job.make_tables(chosen, [PUBLICATIONS], _blocks_of_messages(job), follow.tables, keep)


def _blocks_of_messages(job: Job) -> list[TaskBlock]:
    """Cut the messages to evaluate into ranges of about equal length, a block for each."""
    first = job.plan.boundary.message
    if job.small:
        return [TaskBlock(job.step_constants("all", (first, OPEN)))]
    count = job.row_count(staged.MESSAGES.name)
    arrivals = job.row_count(staged.ARRIVALS.name) if staged.ARRIVALS.name in job.tables else 0
    tasks = max(job.parallelism, -(-arrivals // _ROWS_AT_ONCE))
    number = max(1, min(count, tasks))
    ends = [first + count * at // number for at in range(number + 1)]
    return [TaskBlock(job.step_constants("all", span)) for span in itertools.pairwise(ends)]


def finish_run(job: Job) -> None:
    """Commit the complete run, without its staged tables."""
    with job.watch(FINISH):
        engines = job.manifest.engines
        if engine := engines.get("structure"):
            engines = metrics.engines_used(job, engine)
        if job.manifest.attribute_files:
            job.update(notes={**job.manifest.notes, ONLY_IN_ATTRIBUTES: _peers_only_in_files(job)})
        manifest = job.final_manifest()
        if job.small:
            _check_inputs(job)
        manifest = retain(job, job.plan.next_generation(manifest))
        done = replace(manifest.with_stage(FINISH, {}), state="complete", engines=engines)
        job.writer.commit(replace(done, extends="", replaces="", boundary=None))


def _peers_only_in_files(job: Job) -> int:
    """Count the peers of side files that the run does not have."""
    run_names = StoredRun(job.writer.directory, job.manifest).read("peers", ["name"])["name"]
    files = read_again(job.manifest.attribute_files)
    return len({value.peer for file in files for value in file.values} - {*run_names.to_pylist()})


FINISH = "finish"
READ = Stage("read", _read_input, format=14)
NAMES = Stage("names", _number_names, format=2)
PERIODS = Stage("periods", _make_periods, format=7)
MESSAGES = Stage("messages", _make_messages, format=9)
METRICS = Stage("metrics", metrics.measure, format=8)
STAGES = (READ, NAMES, PERIODS, MESSAGES, METRICS)
STEPS = (*(stage.name for stage in STAGES), FINISH)
