"""From input to a complete run, by the stages of vizpub.ingest.stages:

    read                input → the source's folded tables, quarantine, and the run's clock
    names               names → peers, topics and the indices of messages; presence
    periods             links, dangling_links, subscriptions, roles, traffic, gauges, rejections
    messages            publications, receptions, missed, metrics/messages
    metrics             all of these → metrics/peers, metrics/topics, metrics/overlay
    finish              the run is complete

A stage reads the tables of earlier stages and writes its own into new directories. They are
committed together when run.json lists them, after a sync. So neither a killed process nor a power
cut leaves partial results, and the next ingest resumes with the interrupted stage
(vizpub.ingest.starting). The tables of a small run are passed on in memory and committed at the end
(vizpub.ingest.job); after an interruption it starts again.

A run that is replaced or appended to stays unchanged until all stages are done
(vizpub.runstore.writer). An append reads little of the existing run, and writes only what is new
(vizpub.ingest.plan).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from pyspark.sql import SparkSession

from vizpub.analytics.graphframes.graphs import load_graphframes
from vizpub.analytics.own import Own
from vizpub.ingest.account import END, START, Account
from vizpub.ingest.inputs.files import Found, find
from vizpub.ingest.inputs.inventory import (
    STEP,
    Inventory,
    check_layers,
    check_options,
    check_source,
    inventory,
)
from vizpub.ingest.job import Job
from vizpub.ingest.measures.choice import Measuring
from vizpub.ingest.plan import end_of
from vizpub.ingest.sources import SOURCES, source_named, sources_for
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.spark.cluster import is_local
from vizpub.ingest.spark.progress import report_failed_tasks, watching
from vizpub.ingest.spark.scale import QUICK_START, SMALL_RUN, is_small, restore, tune
from vizpub.ingest.spark.session import vizpub_errors
from vizpub.ingest.spark.warm import warm_session
from vizpub.ingest.stages import STAGES, STEPS, make
from vizpub.ingest.starting import PUT_BACK, Start, Wanted, check_own
from vizpub.ingest.starting import start as start_of
from vizpub.model.errors import NeedsSettling, UseError
from vizpub.model.progress import Progress, silent
from vizpub.model.run import check_run_name
from vizpub.model.tables import table
from vizpub.model.wording import amount, was_or_were
from vizpub.runstore.inputs import all_inputs
from vizpub.runstore.journal import Journal
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.manifest import Manifest, Since, TableEntry
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.writer import RunWriter, writing

_LOG = logging.getLogger(__name__)
_OWN = ("runs", "collected", "neo4j", SCRATCH)
"""Folders of a workspace that are no input of a folder around it."""
_TIGHTER = 10
"""A Parquet file is at least this many times smaller than compressed lines of the same content."""


@dataclass(frozen=True)
class IngestRequest:
    """The input, the name and the options of a run to make."""

    paths: tuple[str, ...]
    run: str
    workspace: Path
    source: str = "auto"
    options: SourceOptions = field(default_factory=SourceOptions)
    measuring: Measuring = field(default_factory=Measuring)
    replace: bool = False
    """Replace an existing run, whatever it was made from."""
    append: bool = False
    """Add files to an existing run that it was not made from yet."""
    settle: bool = True
    """Where files cannot be added to the run as it is, make it anew from all of them."""
    settles: tuple[int, int] | None = None
    """With `replace`: `paths` have all files of the run, which had that number and size."""
    collection: str = ""
    """The identity of the collection that makes the run; empty = none does."""
    keep_going: bool = False
    """Continue even if most records are refused."""
    master: str | None = None
    """Spark master; null = the environment's, or this machine."""
    profile: bool = False
    """Account for processors and memory, too."""

    def __post_init__(self) -> None:
        """Raises: UseError for options that exclude each other, and an invalid run name."""
        check_run_name(self.run)
        if self.append and self.replace:
            raise UseError("--append adds to a run, --replace recreates it: give only one of them")

    @cached_property
    def found(self) -> dict[str, Found]:
        """The files to read, by path. Raises: UnknownName for an unknown source; as find."""
        check_source(self.source, SOURCES)
        return find(self.paths, (str(self.workspace / folder) for folder in _OWN))

    @property
    def size(self) -> int:
        """Bytes of input, as if all of it were compressed lines."""
        files = dict(chain(*(found.files.items() for found in self.found.values())))
        return sum(
            _TIGHTER * stamp.size if path.endswith(".parquet") else stamp.size
            for path, stamp in files.items()
        )


@dataclass(frozen=True)
class IngestOutcome:
    """The run, and whether it was complete already."""

    run: StoredRun
    already_complete: bool
    account: Account = field(default_factory=Account)
    """Where the time went."""


def ingest(request: IngestRequest, progress: Progress = silent) -> IngestOutcome:
    """Make a run, resume an interrupted one, or find that it is complete.

    Raises: InputError and UseError for input or options that cannot be used, InputsDiffer if the
    run exists and was made from something else, RunLocked, StoreBroken, JavaMissing, DiskFull,
    SparkFailed.
    """
    with vizpub_errors(request.workspace):
        try:
            return _ingest(request, progress)
        except NeedsSettling:
            if not request.settle:
                raise
            return _ingest(made_anew(request), progress)


def settle(
    run: StoredRun,
    own: tuple[Own, ...] = (),
    master: str | None = None,
    progress: Progress = silent,
) -> IngestOutcome:
    """Make a run anew from all files that it was made from, late records included, beside the old
    one. Raises: as `ingest`; UseError where files have changed or are gone, or `own` are not the
    run's own metrics.
    """
    return ingest(settling(run, own, master), progress)


def settling(run: StoredRun, own: tuple[Own, ...] = (), master: str | None = None) -> IngestRequest:
    """The request to make the run anew, with its own options. Most of its records may be refused,
    as they were before.
    """
    check_own(run.manifest, [one.metric for one in own])
    told, directory = run.manifest.options, run.directory
    options = SourceOptions(
        **{of.name: told.get(of.name, of.default) for of in fields(SourceOptions)}
    )
    asked = IngestRequest(
        (),
        run.name,
        directory.parents[1],
        options=options,
        measuring=Measuring.of(told, own),
        keep_going=True,
        master=master,
    )
    return made_anew(asked)


def made_anew(request: IngestRequest) -> IngestRequest:
    """The request to make the run anew from all of its files and those of the request.

    Raises: UseError where files are gone.
    """
    run = open_run(request.workspace, request.run)
    paths = [file["path"] for file in all_inputs(run.directory, run.manifest)]
    if gone := [path for path in paths if "://" not in path and not os.path.exists(path)]:
        raise UseError(
            f"run '{run.name}' cannot be rebuilt: {len(gone)} of {amount(len(paths), 'input')} "
            f"{was_or_were(len(gone))} removed, the first is {gone[0]}; " + PUT_BACK
        )
    return replace(
        request,
        paths=tuple(dict.fromkeys([*paths, *request.paths])),
        source=run.manifest.source,
        append=False,
        replace=True,
        settles=run.manifest.input_size,
        collection=run.manifest.collection,
    )


def _ingest(request: IngestRequest, progress: Progress) -> IngestOutcome:
    size, account = request.size, Account()
    with writing(request.workspace, request.run) as writer:
        # Inspect a small input before Spark starts: it may be refused, or already be ingested.
        start = _look(request, writer, None, account) if is_small(size) else None
        if start and start.made:
            return IngestOutcome(start.made, already_complete=True, account=account)
        with ExitStack() as stack:
            with account.part(START):
                scratch, quick = request.workspace / SCRATCH, size < QUICK_START
                session = warm_session(scratch, master=request.master, quick=quick)
                spark = stack.enter_context(session)
            start = start or _look(request, writer, spark, account, progress)
            outcome = _make(spark, writer, request, start, account, progress)
            with account.part(END):
                stack.close()
        return outcome


def ingest_in(
    spark: SparkSession, writer: RunWriter, request: IngestRequest, progress: Progress = silent
) -> IngestOutcome:
    """As `ingest`, in a given session and into the run of a given writer."""
    try:
        return _ingest_in(spark, writer, request, progress)
    except NeedsSettling:
        if not request.settle:
            raise
        return _ingest_in(spark, writer, made_anew(request), progress)


def _ingest_in(
    spark: SparkSession, writer: RunWriter, request: IngestRequest, progress: Progress
) -> IngestOutcome:
    small, account = is_small(request.size), Account()
    start = _look(request, writer, None if small else spark, account, progress)
    return _make(spark, writer, request, start, account, progress)


def _look(
    request: IngestRequest,
    writer: RunWriter,
    spark: SparkSession | None,
    account: Account,
    progress: Progress = silent,
) -> Start:
    """Inspect the input, and decide where the ingest starts."""
    writer.check_owner(request.collection)
    many = None if spark is None or is_local(spark.sparkContext.master) else spark
    with account.part(STEP), watching(many, STEP, progress) if many else nullcontext():
        asked, limit = request.source, request.options.max_line
        sources = sources_for(request.options.columns)
        found = inventory(many, request.found, sources, asked, progress, limit)
        source = source_named(found.source)
        check_options(source, request.options)
        if (layers := source.layers(found.files)) is not None:
            check_layers(request.measuring.layers, layers)
        fresh = _new_manifest(request, found)
        wanted = Wanted(fresh, found.files, request.replace, request.append, request.settles)
        return start_of(writer, wanted)


def _make(
    spark: SparkSession,
    writer: RunWriter,
    request: IngestRequest,
    start: Start,
    account: Account,
    progress: Progress,
) -> IngestOutcome:
    if start.made:
        return IngestOutcome(start.made, already_complete=True, account=account)
    if request.measuring.engine == "graphframes":
        load_graphframes(spark)  # fail now, not after an hour
    start.begin()
    begun = writer.manifest
    assert begun is not None
    size = sum(file.size for file in start.files)
    alone = is_local(spark.sparkContext.master) and request.measuring.engine != "graphframes"
    small = alone and is_small(size) and (writer.base is None or _is_light(writer.base))
    files = tuple(start.files)
    journal = Journal(writer.directory)
    steps = _Steps(spark, writer, account, journal, progress)
    asked = spark, writer, files, request.options, request.measuring
    reporting = account, steps, journal.note, request.keep_going
    with (
        journal.ingest(_log_entry(begun)),
        vizpub_errors(request.workspace),
        account.watched(spark, closely=request.profile),
    ):
        _do(Job(*asked, small, *reporting), request.workspace)
    assert writer.manifest is not None
    run = StoredRun(writer.directory, writer.manifest)
    return IngestOutcome(run, already_complete=False, account=account)


def _is_light(base: Manifest) -> bool:
    """Whether an append reads so little of the run that the plans of a small input do."""
    assert base.clock is not None
    open_yet = Since("valid_to", end_of(base.clock))
    parts = (
        part.reaching(open_yet)
        for name, entry in base.tables.items()
        if "valid_to" in table(name).names
        for part in entry.parts
    )
    rows = (part.rows if part.files is None else sum(f.rows for f in part.files) for part in parts)
    return sum(rows) <= SMALL_RUN


def _log_entry(begun: Manifest) -> str:
    """The log's entry for the start of an ingest."""
    size = sum(int(file["size"]) for file in begun.inputs)
    facts = [
        f"vizpub {begun.versions.get('vizpub', '')}, process {os.getpid()}",
        f"source {begun.source}, {amount(len(begun.inputs), 'file')}, {amount(size, 'byte')}",
    ]
    facts += (
        ["adds to the run"] if begun.extends else ["replaces the run"] if begun.replaces else []
    )
    facts += [f"resumes after {', '.join(begun.stages)}"] if begun.stages else []
    return "; ".join(facts)


def _do(job: Job, workspace: Path) -> None:
    before = tune(job.spark, job.small)
    try:
        with vizpub_errors(workspace):  # what own metrics raise in tasks is a UseError, too
            make(job)
    except UseError:
        job.writer.restore()
        raise
    finally:
        restore(job.spark, before)


@dataclass
class _Steps:
    """Reports the progress of stages, and records their time."""

    spark: SparkSession
    writer: RunWriter
    account: Account
    journal: Journal
    progress: Progress

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        step, before = f"{stage} ({STEPS.index(stage) + 1}/{len(STEPS)})", self._tables()
        with (
            self.account.part(stage, lambda: sum(self._rows(before).values())),
            self.journal.stage(stage, lambda: self._rows(before)),
            report_failed_tasks(self.spark, self._repeated),
            watching(self.spark, step, self.progress),
        ):
            yield

    def _tables(self) -> dict[str, TableEntry]:
        return self.writer.manifest.tables if self.writer.manifest else {}

    def _rows(self, before: dict[str, TableEntry]) -> dict[str, int]:
        """Rows of each new table."""
        there = self._tables().items()
        return {name: entry.rows for name, entry in there if before.get(name) != entry}

    def _repeated(self, why: str) -> None:
        _LOG.warning("%s", why)
        self.journal.note(why)


def _new_manifest(request: IngestRequest, found: Inventory) -> Manifest:
    return Manifest(
        name=request.run,
        source=found.source,
        inputs=tuple(file.manifest_entry for file in found.files),
        options={**asdict(request.options), **request.measuring.options},
        own=tuple(own.metric for own in request.measuring.measures.own),
        collection=request.collection,
        skipped=tuple(f"{path}: {why}" for path, why in found.skipped),
        versions={name: version(name) for name in ("vizpub", "pyspark", "pyarrow", "numba")},
        formats={stage.name: stage.format for stage in STAGES},
    )
