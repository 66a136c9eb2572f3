"""The stages of an ingest, in order; see ingest.pipeline for what each is for.

Each takes the job, reads what earlier stages committed, and commits its own tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.dissemination import Messages, measure_messages
from analytics.structure import Versions, chosen_engine, chosen_layers, measure, measured_by
from analytics.summaries import Metrics, Seen, overlay_table, peers_table, topics_table
from ingest import dense, messages
from ingest.job import Job
from ingest.sources.base import DUPLICATES_OF_MESSAGE, Description, Observed
from ingest.versions import clip, close_at, coalesce, without
from model.errors import UnknownName

_ARRIVALS_PER_BUCKET = 1_000_000
"""Receptions that one task holds at once to follow their chains."""


@dataclass(frozen=True)
class Stage:
    """A step that is done wholly or not at all."""

    name: str
    run: Callable[[Job], None]


def _parse(job: Job) -> None:
    parsed = job.source.parse(job.spark, job.files, job.options)
    quarantine = parsed.pop("quarantine")
    staged = {f"staged/parsed.{name}": frame for name, frame in parsed.items()}
    try:
        job.commit("parse", {**staged, "quarantine": quarantine})
    finally:
        # What a source kept in memory to write several tables from is not needed again.
        job.spark.catalog.clearCache()


def _describe(job: Job) -> None:
    told = job.source.describe(job.staged("parsed"), job.options)
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
    )
    job.writer.accept()


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
    )


def _observed(job: Job) -> Observed:
    return job.source.observe(job.staged("parsed"), _described(job), job.options)


def _observe(job: Job) -> None:
    tables = dense.observed_tables(_observed(job))
    job.commit("observe", {f"staged/observed.{name}": frame for name, frame in tables.items()})


def _index(job: Job) -> None:
    observed = job.staged("observed")
    peers = dense.peer_index(observed, job.clock, job.source.peer_key)
    topics = dense.topic_index(observed, job.clock)
    has_messages = "publications" in observed
    job.commit(
        "index",
        {
            "staged/index.peers": peers,
            "staged/index.topics": topics,
            "staged/index.messages": dense.message_index(observed) if has_messages else None,
            "peers": peers.select(F.col("index").alias("peer"), "key", "reports"),
            "topics": topics.select(F.col("index").alias("topic"), F.col("name").alias("key")),
        },
    )


def _indices(job: Job) -> dense.Indices:
    index = job.staged("index")
    return dense.Indices(index["peers"], index["topics"], index.get("messages"))


def _presence(job: Job) -> None:
    rows = job.staged("observed").get("presence")
    if rows is None:
        return job.commit("presence", {})
    stays = coalesce(dense.with_peers(rows, _indices(job), "peer"), ["peer"])
    return job.commit("presence", {"presence": _ended(job, stays)})


def _ended(job: Job, spans: DataFrame) -> DataFrame:
    """Where the source marks its end, what is open closes after the last interval."""
    if not job.manifest.ended:
        return spans
    return close_at(spans, job.clock.sampling_tick(job.clock.last) + 1)


def _versions(job: Job) -> None:
    observed, presence = job.staged("observed"), job.table("presence")
    links = _maximal(job, observed.get("links"), ("src", "dst", "layer", "topic"))
    kept = dangling = None
    if links is not None:
        links = links.persist()  # what is kept and what is not are made from the same
        kept = links if presence is None else clip(clip(links, presence, "src"), presence, "dst")
        dangling = without(links, kept, ["src", "dst", "layer", "topic"])
    spans = {
        "subscriptions": _maximal(job, observed.get("subscriptions"), ("peer", "topic")),
        "roles": _maximal(job, observed.get("roles"), ("peer", "role", "topic")),
    }
    if presence is not None:
        spans = {name: rows and clip(rows, presence, "peer") for name, rows in spans.items()}
    try:
        job.commit("versions", {"links": kept, "dangling_links": dangling, **spans})
    finally:
        job.spark.catalog.clearCache()


def _maximal(job: Job, rows: DataFrame | None, keys: tuple[str, ...]) -> DataFrame | None:
    """Observed spans as dense, maximal versions."""
    if rows is None:
        return None
    indices = _indices(job)
    peers = [key for key in keys if key in dense.PEER_COLUMNS]
    return _ended(
        job, coalesce(dense.with_topics(dense.with_peers(rows, indices, *peers), indices), keys)
    )


def _messages(job: Job) -> None:
    observed, indices = job.staged("observed"), _indices(job)
    tables: dict[str, DataFrame | None] = {
        name: frame and dense.with_peers(frame, indices, "peer")
        for name, frame in (
            ("traffic", observed.get("traffic")),
            ("staged/untold", observed.get("untold")),
        )
    }
    if "publications" in observed:
        tables["publications"] = messages.publications(observed, indices)
        tables["rejections"] = messages.rejections(observed, indices)
    job.commit("messages", tables)


def _receptions(job: Job) -> None:
    observed = job.staged("observed")
    rows = None
    if "receptions" in observed:
        arrivals = job.manifest.tables["staged/observed.receptions"].rows
        rows = messages.receptions(
            observed,
            _indices(job),
            job.known("publications"),
            job.table("subscriptions"),
            buckets=job.parallelism + arrivals // _ARRIVALS_PER_BUCKET,
        )
    job.commit("receptions", {"receptions": rows})


def _structure(job: Job) -> None:
    presence = job.table("presence")
    if presence is None:
        return job.commit("structure", {})
    nothing = presence.selectExpr("peer", "peer AS src", "peer AS dst", "peer AS topic", "vf", "vt")
    links, subscriptions = job.table("links"), job.table("subscriptions")
    layers = job.measuring.layers
    if links is not None and layers:
        _check_layers(links, layers)
    versions = Versions(
        presence,
        nothing.limit(0) if links is None else chosen_layers(links, layers),
        nothing.limit(0) if subscriptions is None else subscriptions,
        peers=job.manifest.tables["peers"].rows,
    )
    engine = chosen_engine(job.measuring.engine)
    rows = measure(versions, job.clock, job.measuring.measures, engine)
    return job.commit("structure", {"staged/structure": rows}, engines={"structure": engine})


def _check_layers(links: DataFrame, layers: tuple[str, ...]) -> None:
    known = sorted(row.layer for row in links.select("layer").distinct().collect())
    for layer in layers:
        if layer not in known:
            raise UnknownName("layer", layer, known, "--layers")


def _message_metrics(job: Job) -> None:
    rows = None
    if "publications" in job.manifest.tables:
        rows = measure_messages(
            Messages(
                job.known("publications"),
                job.table("receptions"),
                job.known("rejections"),
                job.table("subscriptions"),
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
        structure=job.table("staged/structure"),
        subscriptions=job.table("subscriptions"),
        traffic=job.table("traffic"),
        publications=job.table("publications"),
        receptions=job.table("receptions"),
        untold=job.table("staged/untold"),
        duplicates_known=_duplicates_known(job),
        links_known=job.table("links") is not None,
    )
    tables: dict[str, DataFrame | None] = {
        "metrics/peers": peers_table(seen),
        "metrics/topics": topics_table(seen, job.table("metrics/messages")),
    }
    job.commit("peer and topic metrics", tables)


def _overlay_metrics(job: Job) -> None:
    dangling = job.table("dangling_links")
    metrics = Metrics(
        job.clock,
        job.known("metrics/peers"),
        job.table("staged/structure"),
        job.table("metrics/messages"),
        job.table("publications"),
        None if dangling is None else chosen_layers(dangling, job.measuring.layers),
        receptions_known=job.table("receptions") is not None,
        links_known=job.table("links") is not None,
    )
    job.commit("overlay metrics", {"metrics/overlay": overlay_table(metrics)})


def _finish(job: Job) -> None:
    """The run is complete, and what was only staged is let go."""
    kept = {n: e for n, e in job.manifest.tables.items() if not n.startswith("staged/")}
    engines = job.manifest.engines
    if engine := engines.get("structure"):
        overlay = job.known("metrics/overlay")
        engines = measured_by(engine, job.measuring.measures, overlay)
    done = job.manifest.with_stage("finish", {}, state="complete", engines=engines)
    job.writer.commit(replace(done, tables=kept))
    job.writer.sweep()


STAGES = (
    Stage("parse", _parse),
    Stage("describe", _describe),
    Stage("observe", _observe),
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
