"""The stages of an ingest, in the order in which `make` does them.

Each takes the tables of earlier stages and returns its own; a table that is not known is null.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics import message_fold
from analytics.message_fold import MessageFold
from analytics.structure import Versions, chosen_layers
from ingest import indexing, messages, metrics
from ingest.files import check_unchanged
from ingest.fold import reasons
from ingest.inventory import check_layers
from ingest.job import Job, Stage
from ingest.periods import clip, close_at, coalesce, outside
from ingest.plan import end_of
from ingest.sources.base import Observed
from ingest.sources.times import ALONE, TOO_FAR
from ingest.stage import kept_as, with_tables
from model.errors import InputError
from model.run import DUPLICATES
from model.wording import amount
from runstore.manifest import LATE_MESSAGES

_OF_LINK = ("src", "dst", "layer", "topic")
_OF_SUBSCRIPTION = ("peer", "topic")
_OF_ROLE = ("peer", "role", "topic")

Table = DataFrame | None
"""Null = unknown."""


def make(job: Job) -> None:
    """Do all stages of the run that are not done yet.

    Raises: InputError, UseError and UnknownName for input or options that cannot be used; Outgrown.
    """
    job.do(READ)
    if job.plan.is_idle or not job.small:  # a small input is looked at again in the end
        _check_inputs(job)
    if job.plan.is_idle:
        job.commit_unchanged()
        return
    observed = observe(job)
    names = job.do(NAMES, observed)
    periods = job.do(PERIODS, observed, names)
    events = job.do(EVENTS, observed, names)
    job.do(MESSAGES, observed, names, periods, events)
    job.do(METRICS, periods)
    finish(job)


@dataclass(frozen=True)
class Nothing:
    """The result of a stage that only changes run.json."""


def _read(job: Job) -> Nothing:
    """Input → the source's tables, the quarantine, and the description of the run."""
    try:
        job.fold()
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
    return Nothing()


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
    links = job.observed.links
    return {row.layer for row in links.select("layer").distinct().collect()} if links else set()


def _check_inputs(job: Job) -> None:
    """Raises: InputError for a file that changed after it was inspected."""
    check_unchanged({file.path: file.stamp for file in job.files if file.stamp})


def observe(job: Job) -> Observed:
    """The observed tables of the source; lazy."""
    return job.plan.unsettled(job.observed)


@dataclass(frozen=True)
class Names:
    """The index of each name."""

    peers: DataFrame = kept_as("peers")
    topics: DataFrame = kept_as("topics")
    of_messages: Table = kept_as("staged/names.messages")
    """name, index."""

    @property
    def indices(self) -> indexing.Indices:
        """For ingest.indexing."""
        peers, topics = (
            frame.select("name", F.col(index).alias("index"))
            for frame, index in ((self.peers, "peer"), (self.topics, "topic"))
        )
        return indexing.Indices(peers, topics, self.of_messages)


def _names(job: Job, observed: Observed) -> Names:
    """Names → the tables peers and topics, and the indices of messages."""
    plan, clock = job.plan, job.clock
    job.update(boundary=plan.find_boundary(observed))
    if late := plan.late_messages():
        job.update(notes={**job.manifest.notes, LATE_MESSAGES: late})
    known_peers = plan.known("peers", "name", "peer AS index")
    peers = indexing.peer_index(observed, clock, known_peers)
    topics = indexing.topic_index(observed, clock, plan.known("topics", "name", "topic AS index"))
    of_messages = None
    if observed.publications is not None:
        known = plan.known("publications", "name", "message AS index")
        of_messages = indexing.message_index(observed, known)
    return Names(
        peers.select(F.col("index").alias("peer"), "name", "is_reporter"),
        topics.select(F.col("index").alias("topic"), "name"),
        of_messages,
    )


@dataclass(frozen=True)
class Periods:
    """Validity periods, maximal and disjoint for each key."""

    presence: Table = kept_as("presence")
    links: Table = kept_as("links")
    dangling_links: Table = kept_as("dangling_links")
    subscriptions: Table = kept_as("subscriptions")
    roles: Table = kept_as("roles")


def _periods(job: Job, observed: Observed, names: Names) -> Periods:
    """Observed periods → maximal periods, clipped to the presence of the peers."""
    within = job.source.settled  # the presence of their reporter, also joined to earlier ones
    presence = _maximal(job, names, observed.presence, ("peer",), "presence")
    links = _maximal(job, names, observed.links, _OF_LINK, "links", "dangling_links")
    taken = _maximal(job, names, observed.subscriptions, _OF_SUBSCRIPTION, "subscriptions")
    roles = _maximal(job, names, observed.roles, _OF_ROLE, "roles")
    if presence is None:
        return Periods(None, links, links and links.limit(0), taken, roles)
    kept = dangling = None
    if links is None:
        (presence,) = job.once(presence=presence)
    else:  # for links and for dangling_links
        presence, links = job.once(presence=presence, links=links)
        kept, ends = links, ("dst",) if within else ("src", "dst")
        for end in ends:
            kept = clip(kept, presence, end)
        dangling = outside(links, presence, *ends)
    if not within:
        taken, roles = (rows and clip(rows, presence, "peer") for rows in (taken, roles))
    return Periods(presence, kept, dangling, taken, roles)


def _maximal(
    job: Job, names: Names, rows: Table, keys: tuple[str, ...], *tables: str
) -> DataFrame | None:
    """Observed periods by index, made maximal together with stored ones that may still change; if
    the source marks its end, open periods end after the last interval.
    """
    if rows is None:
        return None
    periods = indexing.with_indices(rows, names.indices)
    if not job.plan.are_maximal:
        periods = coalesce(job.plan.going_on(periods, *tables), keys)
    return close_at(periods, end_of(job.clock)) if job.manifest.ended else periods


@dataclass(frozen=True)
class Events:
    """What happened: traffic, gauges, and what is reported about messages except arrivals."""

    traffic: Table = kept_as("traffic")
    gauges: Table = kept_as("gauges")
    publications: Table = kept_as("publications")
    rejections: Table = kept_as("rejections")
    unreported: Table = kept_as("staged/unreported")
    """See ingest.sources.base.Observed."""


def _events(job: Job, observed: Observed, names: Names) -> Events:
    """Names → indices."""
    heard = (rows and job.plan.unheard(rows) for rows in (observed.traffic, observed.gauges))
    ever = job.plan.of_messages(observed, names.of_messages)
    traffic, gauges, unreported = (
        rows and indexing.with_indices(rows, names.indices) for rows in (*heard, ever.unreported)
    )
    if ever.publications is None:
        return Events(traffic, gauges, unreported=unreported)
    tables = indexing.observed_tables(ever)
    published = messages.publications(tables, names.indices)
    known = job.is_known("rejections")
    refused = messages.rejections(tables, names.indices) if known else None
    return Events(traffic, gauges, published, refused, unreported)


@dataclass(frozen=True)
class OfMessages:
    """The dissemination of messages."""

    receptions: Table = kept_as("receptions")
    missed: Table = kept_as("missed")
    metrics: Table = kept_as("metrics/messages")


def _messages(
    job: Job, observed: Observed, names: Names, periods: Periods, events: Events
) -> OfMessages:
    """Receptions with `first`, `subscribed`, `eligible` and `hop`; missed; and metrics/messages."""
    if events.publications is None:
        return OfMessages()
    received = job.plan.of_messages(observed, names.of_messages).receptions
    tables = messages.MessageTables(
        events.publications,
        events.rejections,
        received and messages.arrivals(received, names.indices),
        job.plan.with_older(periods, "subscriptions").subscriptions,
        events.unreported,
    )
    rows = messages.rows_by_message(tables, 1 if job.small else job.parallelism)
    fold = MessageFold(
        received is not None,
        tables.subscriptions is not None,
        job.is_known(DUPLICATES),
        sampled_since=job.clock.first if job.clock.ticks_per_interval == 1 else None,
        own=job.measuring.measures.own,
        rejections_known=events.rejections is not None,
    )
    schemas = {table.name: table.arrow for table in fold.tables}
    each = job.write_rows(rows, fold, schemas)
    before = job.base.arrival_capabilities if job.base else None
    job.update(
        arrival_capabilities=message_fold.together([before, *(json.loads(one) for one in each)])
    )
    return with_tables(OfMessages, {name: job.stored(name) for name in schemas})


def _metrics(job: Job, periods: Periods) -> metrics.OfIntervals:
    """Every interval's overlay, measured, with its traffic and messages."""
    presence, links, subscriptions = periods.presence, periods.links, periods.subscriptions
    if presence is None:
        return metrics.measure(job, None)
    nothing = presence.selectExpr(
        "peer", "peer AS src", "peer AS dst", "peer AS topic", "valid_from", "valid_to"
    )
    overlay = Versions(
        presence,
        nothing.limit(0) if links is None else chosen_layers(links, job.measuring.layers),
        nothing.limit(0) if subscriptions is None else subscriptions,
        peers=job.rows("peers"),
    )
    return metrics.measure(job, overlay)


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
READ = Stage("read", _read, Nothing, format=6)
NAMES = Stage("names", _names, Names)
PERIODS = Stage("periods", _periods, Periods, format=2)
EVENTS = Stage("events", _events, Events, format=3)
MESSAGES = Stage("messages", _messages, OfMessages, format=4)
METRICS = Stage("metrics", _metrics, metrics.OfIntervals, format=4)
STAGES = (READ, NAMES, PERIODS, EVENTS, MESSAGES, METRICS)
STEPS = (*(stage.name for stage in STAGES), FINISH)
