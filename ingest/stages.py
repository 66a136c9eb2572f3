"""The stages of an ingest, in order; see ingest.pipeline for what each is for.

Each takes the job, reads what earlier stages committed, and commits its own tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.dissemination import Messages, measure_messages
from analytics.engines import engine_for
from analytics.structure import Versions, chosen_layers, measure, measured_by
from analytics.summaries import Metrics, Seen, overlay_table, peers_table, topics_table
from ingest import dense, messages
from ingest.files import check_unchanged
from ingest.growth import (
    alive,
    carried_in,
    check_telling,
    end_of,
    find_boundary,
    known_names,
    observed_of_messages,
    recent,
    structure_from_boundary,
    unsettled,
)
from ingest.job import OBSERVED_ONCE, Job
from ingest.sources.base import DUPLICATES_OF_MESSAGE, Description, ParsedSource, Source
from ingest.sources.folded import FoldedSource
from ingest.versions import clip, close_at, coalesce, outside
from model.errors import InputError, UnknownName

_OF_ROLE = ("peer", "role", "topic")
_ARRIVALS_PER_BUCKET = 1_000_000
"""Receptions that one task holds at once to follow their chains."""


@dataclass(frozen=True)
class Stage:
    """A step that is done wholly or not at all."""

    name: str
    run: Callable[[Job], None]
    shares: bool = False
    """It hands on what is not written: it is run, too, where its tables are there already."""
    format: int = 1
    """Changes with what it writes, or what later stages and appends make of that: what another
    format has written is made anew, and not appended to."""


def _parse(job: Job) -> None:
    source, begun = job.source, job.manifest
    if isinstance(source, FoldedSource):
        job.fold("parse", source)
    else:
        parsed = _spark(source).parse(job.spark, job.files, job.options)
        quarantine = parsed.pop("quarantine")
        staged = {f"staged/parsed.{name}": frame for name, frame in parsed.items()}
        job.commit("parse", {**staged, "quarantine": quarantine})
        # What a source kept in memory to write several tables from is not needed again.
        job.release()
    if not job.small:  # nothing is read yet of a small input
        try:
            _check_inputs(job)
        except InputError:
            job.writer.commit(begun)
            raise


def _spark(source: Source) -> ParsedSource:
    assert isinstance(source, ParsedSource)
    return source


def _check_inputs(job: Job) -> None:
    """Raises: InputError for a file that is no longer what run.json says of it."""
    check_unchanged({file.path: file.stamp for file in job.files if file.stamp})


def _describe(job: Job) -> None:
    source = job.source
    if isinstance(source, FoldedSource):
        before = job.base.totals if job.base else None
        told = source.describe_run(job.manifest.totals, before, job.options)
    else:
        told = _spark(source).describe(job.staged("parsed"), job.options)
    if job.base is not None:
        check_telling(job.base.unknown, told.unknown)
    job.commit(
        "describe",
        {},
        clock=told.clock,
        protocol=told.protocol,
        parameters=told.parameters,
        seed=told.seed,
        epoch=told.epoch,
        ended=told.ended,
        unknown=tuple(told.unknown),
        notes=dict(told.notes),
        totals=dict(told.totals),
    )


def _described(job: Job) -> Description:
    """What `describe` found, back from the manifest."""
    run = job.manifest
    return Description(
        job.clock,
        run.protocol,
        run.parameters,
        run.seed,
        run.epoch,
        run.ended,
        run.unknown,
        run.notes,
        run.totals,
    )


def _observe(job: Job) -> None:
    """Of what was folded the tables are made as they are read, by what is known of the run as a
    whole; what an append is to find of messages is written.
    """
    source, parsed, described = job.source, job.staged("parsed"), _described(job)
    if isinstance(source, FoldedSource):
        observed = source.observe_run(parsed, described, job.options)
    else:
        observed = _spark(source).observe(parsed, described, job.options)
    tables = {
        f"staged/observed.{name}": unsettled(job, frame)
        for name, frame in dense.observed_tables(observed).items()
    }
    written = {}
    if isinstance(source, FoldedSource):
        of_messages = {f"staged/observed.{name}": name for name in OBSERVED_ONCE}
        job.share({name: frame for name, frame in tables.items() if name not in of_messages})
        tables = {name: frame for name, frame in tables.items() if name in of_messages}
        # What is observed as it was folded is there already.
        same = [name for name in tables if tables[name] is parsed.get(of_messages[name])]
        written = {name: job.listed(f"staged/parsed.{of_messages[name]}") for name in same}
        tables = {name: frame for name, frame in tables.items() if name not in written}
    if "observe" not in job.manifest.stages:
        job.commit("observe", tables, written)


def _index(job: Job) -> None:
    observed, clock = job.staged("observed"), job.clock
    known_peers = known_names(job, "peers", "key AS name", "key", "peer AS index")
    known_topics = known_names(job, "topics", "key AS name", "topic AS index")
    boundary = job.base and find_boundary(job, observed)
    if (reported := job.before("peers")) is not None:
        told = reported.where("reports").select("key", "reports", F.lit(None).alias("interval"))
        observed["peers"] = observed["peers"].unionByName(told).dropDuplicates(["key"])
    peers = dense.peer_index(observed, clock, job.source.peer_key, known_peers)
    topics = dense.topic_index(observed, clock, known_topics)
    messages = None
    if "publications" in observed:
        known = known_names(job, "publications", "key AS name", "message AS index")
        if known and boundary:
            touched = known.names.where(F.col("index") >= boundary.message)
            known = dense.Known(touched, known.taken)
        messages = dense.message_index(observed, known)
    job.commit(
        "index",
        {
            "staged/index.peers": peers,
            "staged/index.topics": topics,
            "staged/index.messages": messages,
            "peers": peers.select(F.col("index").alias("peer"), "key", "reports"),
            "topics": topics.select(F.col("index").alias("topic"), F.col("name").alias("key")),
        },
        boundary=boundary,
    )


def _indices(job: Job) -> dense.Indices:
    index = job.staged("index")
    return dense.Indices(index["peers"], index["topics"], index.get("messages"))


def _presence(job: Job) -> None:
    rows = job.staged("observed").get("presence")
    if rows is None:
        return job.commit("presence", {})
    stays = dense.with_peers(rows, _indices(job), "peer")
    return job.commit("presence", {"presence": _maximal(job, stays, ("peer",), "presence")})


def _versions(job: Job) -> None:
    observed, presence = job.staged("observed"), job.made("presence")
    of_link = ("src", "dst", "layer", "topic")
    links = _dense(job, observed.get("links"), of_link, "links", "dangling_links")
    kept = dangling = None
    if links is not None:
        links = links.persist()  # what is kept and what is not are made from the same
        ends = ("dst",) if job.settled else ("src", "dst")
        kept, dangling = links, links.limit(0)
        if presence is not None:
            for end in ends:
                kept = clip(kept, presence, end)
            dangling = outside(links, presence, *ends)
    spans = {
        name: _dense(job, observed.get(name), keys, name)
        for name, keys in (("subscriptions", ("peer", "topic")), ("roles", _OF_ROLE))
    }
    if presence is not None and not job.settled:
        spans = {name: rows and clip(rows, presence, "peer") for name, rows in spans.items()}
    job.commit("versions", {"links": kept, "dangling_links": dangling, **spans})
    job.release()


def _dense(
    job: Job, rows: DataFrame | None, keys: tuple[str, ...], *tables: str
) -> DataFrame | None:
    """Observed spans as dense, maximal versions; `tables` are those that they go to."""
    if rows is None:
        return None
    indices = _indices(job)
    peers = [key for key in keys if key in dense.PEER_COLUMNS]
    spans = dense.with_topics(dense.with_peers(rows, indices, *peers), indices)
    return _maximal(job, spans, keys, *tables)


def _maximal(job: Job, spans: DataFrame, keys: tuple[str, ...], *tables: str) -> DataFrame:
    """Maximal versions, which go on from what the tables hold; where the source marks its end,
    what is open closes after the last interval.
    """
    parts = [spans, *(carried_in(job, name) for name in tables if job.before(name) is not None)]
    versions = spans if job.settled else coalesce(reduce(DataFrame.unionByName, parts), keys)
    return close_at(versions, end_of(job.clock)) if job.manifest.ended else versions


def _messages(job: Job) -> None:
    observed, indices = observed_of_messages(job), _indices(job)
    traffic = job.staged("observed").get("traffic")
    if traffic is not None and job.base is not None and job.base.clock is not None:
        traffic = traffic.where(F.col("interval") > job.base.clock.last)
    tables: dict[str, DataFrame | None] = {
        name: frame and dense.with_peers(frame, indices, "peer")
        for name, frame in (("traffic", traffic), ("staged/untold", observed.get("untold")))
    }
    if "publications" in observed:
        tables["publications"] = messages.publications(observed, indices)
        tables["rejections"] = messages.rejections(observed, indices)
    job.commit("messages", tables)


def _receptions(job: Job) -> None:
    observed = observed_of_messages(job)
    rows = None
    if "receptions" in observed:
        rows = messages.receptions(
            observed,
            _indices(job),
            _made(job, "publications"),
            alive(job, "subscriptions"),
            buckets=job.parallelism + _arrivals(job) // _ARRIVALS_PER_BUCKET,
        )
    job.commit("receptions", {"receptions": rows})


def _arrivals(job: Job) -> int:
    """How many receptions there are, now and before; a small run has too few to count."""
    if job.small:
        return 0
    before = job.base.tables["receptions"].rows if job.base else 0
    return before + job.rows("staged/observed.receptions")


def _made(job: Job, name: str) -> DataFrame:
    frame = job.made(name)
    assert frame is not None, name
    return frame


def _structure(job: Job) -> None:
    presence = job.made("presence")
    if presence is None:
        return job.commit("structure", {})
    nothing = presence.selectExpr("peer", "peer AS src", "peer AS dst", "peer AS topic", "vf", "vt")
    links, subscriptions = job.made("links"), job.made("subscriptions")
    layers = job.measuring.layers
    if links is not None and layers and job.base is None:
        _check_layers(links, layers)
    versions = Versions(
        presence,
        nothing.limit(0) if links is None else chosen_layers(links, layers),
        nothing.limit(0) if subscriptions is None else subscriptions,
        peers=job.rows("peers"),
    )
    clock = replace(job.clock, first=max(job.since, job.clock.first))
    choice = engine_for(job.measuring.engine, versions, clock)
    rows = measure(versions, clock, job.measuring.measures, choice.engine)
    return job.commit("structure", {"staged/structure": rows}, engines={"structure": choice.told})


def _check_layers(links: DataFrame, layers: tuple[str, ...]) -> None:
    known = sorted(row.layer for row in links.select("layer").distinct().collect())
    for layer in layers:
        if layer not in known:
            raise UnknownName("layer", layer, known, "--layers")


def _message_metrics(job: Job) -> None:
    rows = None
    if job.has("publications"):
        rows = measure_messages(
            Messages(
                _made(job, "publications"),
                job.made("receptions"),
                _made(job, "rejections"),
                alive(job, "subscriptions"),
                job.table("staged/untold"),
                duplicates_known=_duplicates_known(job),
            )
        )
    job.commit("message metrics", {"metrics/messages": rows})


def _duplicates_known(job: Job) -> bool:
    return DUPLICATES_OF_MESSAGE not in job.manifest.unknown


def _peer_and_topic_metrics(job: Job) -> None:
    seen = Seen(
        job.clock,
        job.known("peers"),
        structure=structure_from_boundary(job),
        subscriptions=job.table("subscriptions"),
        traffic=recent(job, job.table("traffic")),
        publications=job.table("publications"),
        receptions=recent(job, job.table("receptions")),
        untold=job.table("staged/untold"),
        duplicates_known=_duplicates_known(job),
        links_known=job.table("links") is not None,
    )
    tables: dict[str, DataFrame | None] = {
        "metrics/peers": recent(job, peers_table(seen)),
        "metrics/topics": recent(job, topics_table(seen, job.table("metrics/messages"))),
    }
    job.commit("peer and topic metrics", tables)


def _overlay_metrics(job: Job) -> None:
    dangling = alive(job, "dangling_links")
    metrics = Metrics(
        replace(job.clock, first=max(job.boundary.interval, job.clock.first)),
        _made(job, "metrics/peers"),
        structure_from_boundary(job),
        job.table("metrics/messages"),
        job.table("publications"),
        None if dangling is None else chosen_layers(dangling, job.measuring.layers),
        receptions_known=job.table("receptions") is not None,
        links_known=job.table("links") is not None,
    )
    job.commit("overlay metrics", {"metrics/overlay": overlay_table(metrics)})


def _finish(job: Job) -> None:
    """The run is complete, and what was only staged is let go."""
    engines = job.manifest.engines
    if engine := engines.get("structure"):
        overlay = job.known("metrics/overlay")
        engines = measured_by(engine, job.measuring.measures, overlay)
    job.settle()
    if job.small:
        _check_inputs(job)
    kept = {n: e for n, e in job.manifest.tables.items() if not n.startswith("staged/")}
    carry = job.carried() if job.source.appendable and not job.manifest.ended else {}
    done = job.manifest.with_stage("finish", {}, state="complete", engines=engines)
    made = replace(done, tables=kept, carry=carry, extends="", replaces="", boundary=None)
    job.writer.commit(made)


STAGES = (
    Stage("parse", _parse),
    Stage("describe", _describe),
    Stage("observe", _observe, shares=True),
    Stage("index", _index),
    Stage("presence", _presence),
    Stage("versions", _versions),
    Stage("messages", _messages),
    Stage("receptions", _receptions),
    Stage("structure", _structure),
    Stage("message metrics", _message_metrics),
    Stage("peer and topic metrics", _peer_and_topic_metrics),
    Stage("overlay metrics", _overlay_metrics),
    Stage("finish", _finish),
)
