"""The stages of an ingest, in the order in which `make` does them.

Each makes tables of those of earlier stages, by the texts in `ingest/sql` and `analytics/sql`, in
tasks of Spark. Names are numbered by one task. Periods and events are made by a task for each part
of what was folded, as all of a peer is in one part; messages by ranges of their numbers; metrics by
blocks of intervals. A table that is not known is not made.
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
from vizpub.analytics.steps import Step, view
from vizpub.ingest.folding import fold
from vizpub.ingest.inputs.files import check_unchanged
from vizpub.ingest.inputs.inventory import check_layers
from vizpub.ingest.job import Job, Stage
from vizpub.ingest.measures import metrics
from vizpub.ingest.sources.times import ALONE, TOO_FAR
from vizpub.ingest.tasks import staged
from vizpub.ingest.tasks.fold import reasons
from vizpub.ingest.tasks.staged import step
from vizpub.ingest.tasks.steps import Block
from vizpub.model.clock import OPEN
from vizpub.model.columns import Table
from vizpub.model.errors import InputError
from vizpub.model.run import DUPLICATES
from vizpub.model.tables import PEERS, PRESENCE, PUBLICATIONS, REJECTIONS, TOPICS, table
from vizpub.model.wording import amount
from vizpub.runstore.manifest import LATE_MESSAGES

_ROWS_AT_ONCE = 2_000_000
"""Arrivals that a task is to sort."""


def make(job: Job) -> None:
    """Do all stages of the run that are not done yet.

    Raises: InputError, UseError and UnknownName for input or options that cannot be used.
    """
    job.do(READ)
    if job.plan.is_idle or not job.small:  # a small input is looked at again in the end
        _check_inputs(job)
    if job.plan.is_idle:
        job.commit_unchanged()
        return
    for stage in (NAMES, PERIODS, MESSAGES, METRICS):
        job.do(stage)
    finish(job)


def _read(job: Job) -> None:
    """Input → the source's tables, the quarantine, and the description of the run."""
    try:
        fold(job)
    except Exception:  # of any kind: a file that has gone meanwhile is the cause
        _check_inputs(job)
        raise
    before = job.base.totals if job.base else None
    description = job.source.describe(job.manifest.totals, before, job.options)
    _judge_refused(job)
    job.plan.check(description.unknown)
    job.update(
        **vars(description) | {"notes": dict(description.notes), "totals": dict(description.totals)}
    )
    if job.measuring.layers and job.base is None and job.source.layers(job.files) is None:
        check_layers(job.measuring.layers, _layers(job))


def _judge_refused(job: Job) -> None:
    """Raises: InputError where most records were refused: the source is probably the wrong one, or
    the program that wrote the input has a fault.
    """
    if not (refused := job.refused.total()):
        return
    message = f"refused {refused:,} of {amount(job.seen, 'record')}: {reasons(job.refused)}"
    # Of an append, all may be of a wrong clock.
    odd = refused - sum(job.refused[why] for why in (ALONE, TOO_FAR))
    if 2 * odd > job.seen and not job.keep_going:
        source = job.manifest.source
        raise InputError(
            message, f"check whether the source is '{source}'; --keep-going ingests the rest"
        )
    job.note(message)


def _layers(job: Job) -> set[str]:
    """The layers of the links that were read."""
    parts = [one.kept for one in job.folded().get("folded/links", ())]
    batches = (rows for part in parts for rows in part.to_batches(columns=["layer"]))
    return {layer for rows in batches for layer in pc.unique(rows["layer"]).to_pylist()}


def _check_inputs(job: Job) -> None:
    """Raises: InputError for a file that changed after it was inspected."""
    check_unchanged({file.path: file.stamp for file in job.files if file.stamp})


def _observing(job: Job) -> tuple[Step, ...]:
    """The steps from folded tables to observed ones."""
    observed = job.observed
    texts = {name: cast(str, getattr(observed, name)) for name in sorted(observed.known)}
    if job.base:
        texts["names"] = _WITHOUT_FINAL.format(names=texts["names"])
    return *observed.functions, *(view(f"observed/{name}", text) for name, text in texts.items())


_WITHOUT_FINAL = """
    FROM ({names})
    WHERE kind <> 'message' OR name NOT IN (
        SELECT name FROM staged.named_again WHERE message < getvariable('first_open')
    )
"""


def _names(job: Job) -> None:
    """Names → peers, topics and messages with their indices; and presence."""
    job.update(boundary=job.plan.find_boundary())
    if late := job.plan.late_messages():
        job.update(notes={**job.manifest.notes, LATE_MESSAGES: late})
    optional = {"publications": staged.MESSAGES, "presence": PRESENCE}
    makes = [PEERS, TOPICS, *_of(job, optional)]
    texts = (step(name) for name in ("peers", "topics", "messages", "presence"))
    job.make_of_whole([*_observing(job), *texts], makes)


def _periods(job: Job) -> None:
    """Observed periods → maximal ones while their peers are present; and events, by index."""
    optional = {name: table(name) for name in _BY_PEER}
    optional |= {
        "unreported": staged.UNREPORTED,
        "publications": staged.CLAIMS,
        "receptions": staged.ARRIVALS,
    }
    makes = [*_of(job, optional)]
    if "links" in job.observed.known:
        makes.append(table("dangling_links"))
    if job.is_known("rejections") and "rejections" in job.observed.known:
        makes.append(REJECTIONS)
    stays = "FROM presence" if "presence" in job.observed.known else _EVERYBODY
    taken = ("presence",) if "presence" in job.observed.known else ("peers",)
    stay = Step("stays", stays, "stays", whole=taken)
    texts = (step(name) for name in ("mine", *_TEXTS))
    job.make([*_observing(job), stay, *texts], makes, _parts(job))


_BY_PEER = ("links", "subscriptions", "roles", "traffic", "gauges")
_TEXTS = (
    *("links", "clipped_links", "dangling_links", "subscriptions", "roles", "traffic", "gauges"),
    *("unreported", "claims", "arrivals", "rejections"),
)
_EVERYBODY = "SELECT peer, -open_end() AS valid_from, open_end() AS valid_to FROM peers"
"""Where presence is unknown, nothing is clipped."""


def _of(job: Job, tables: dict[str, Table]) -> list[Table]:
    """Those of the tables whose observed ones are known."""
    return [of for name, of in tables.items() if name in job.observed.known]


def _parts(job: Job) -> list[Block]:
    """A block for each part of what was folded; of an append, the last one has what no part has."""
    files = job.parts
    if len(files) <= 1:
        return [Block(job.given("all"), job.folded())]
    some = job.given("some")
    blocks = [Block(some, job.folded(file)) for file in files]
    if job.base:
        nothing = {name: [rows[0].nothing] for name, rows in job.folded().items()}
        kept = {f"folded/{name}": job.plan.carried(name) for name in job.source.carried}
        names = {"folded/names": job.folded()["folded/names"]}
        rest = nothing | {name: rows for name, rows in kept.items() if rows} | names
        blocks.append(Block(job.given("rest"), rest))
    return blocks


def _messages(job: Job) -> None:
    """Publications; receptions with `first`, `subscribed`, `eligible` and `hop`; missed; and
    metrics/messages.
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
    followed = Step("messages", "", "", whole=("message_rows",), fold=follow)
    chosen = [step("publications"), step("message_rows"), followed]
    before = job.base.arrival_capabilities if job.base else None

    def keep(summaries: Sequence[str]) -> None:
        each = map(json.loads, summaries)
        job.update(arrival_capabilities=message_fold.together([before, *each]))

    job.make(chosen, [PUBLICATIONS], _ranges(job), follow.tables, keep)


def _ranges(job: Job) -> list[Block]:
    """The messages that are evaluated, cut into ranges of about equal length."""
    first = job.plan.boundary.message
    if job.small:
        return [Block(job.given("all", (first, OPEN)))]
    count = job.rows(staged.MESSAGES.name)
    arrivals = job.rows(staged.ARRIVALS.name) if staged.ARRIVALS.name in job.tables else 0
    tasks = max(job.parallelism, -(-arrivals // _ROWS_AT_ONCE))
    number = max(1, min(count, tasks))
    ends = [first + count * at // number for at in range(number + 1)]
    return [Block(job.given("all", span)) for span in itertools.pairwise(ends)]


def finish(job: Job) -> None:
    """Commit the complete run, without its staged tables."""
    with job.watch(FINISH):
        engines = job.manifest.engines
        if engine := engines.get("structure"):
            engines = metrics.measured_by(job, engine)
        made = job.settle()
        if job.small:
            _check_inputs(job)
        made = job.plan.next_generation(made)
        done = replace(made.with_stage(FINISH, {}), state="complete", engines=engines)
        job.writer.commit(replace(done, extends="", replaces="", boundary=None))


FINISH = "finish"
READ = Stage("read", _read, format=6)
NAMES = Stage("names", _names, format=2)
PERIODS = Stage("periods", _periods, format=3)
MESSAGES = Stage("messages", _messages, format=5)
METRICS = Stage("metrics", metrics.measure, format=4)
STAGES = (READ, NAMES, PERIODS, MESSAGES, METRICS)
STEPS = (*(stage.name for stage in STAGES), FINISH)
