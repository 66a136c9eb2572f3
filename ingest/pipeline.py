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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version

from pyspark.sql import SparkSession

from vizpub.analytics.graphframes.graphs import load_graphframes
from vizpub.analytics.own import OwnFunction
from vizpub.ingest.account import END, START, Account
from vizpub.ingest.inputs.attributes import read_attribute_files
from vizpub.ingest.inputs.inventory import (
    STEP,
    check_layers,
    check_options,
    take_inventory,
)
from vizpub.ingest.job import Job
from vizpub.ingest.measures.choice import NO_FRAMES, MeasurementOptions
from vizpub.ingest.plan import end_tick
from vizpub.ingest.request import IngestRequest
from vizpub.ingest.sources import find_source, sources_for
from vizpub.ingest.sources.base import SourceOptions
from vizpub.ingest.spark.cluster import is_local
from vizpub.ingest.spark.progress import report_failed_tasks, watch_progress
from vizpub.ingest.spark.scale import SMALL_RUN, is_small
from vizpub.ingest.spark.session import vizpub_errors
from vizpub.ingest.spark.warm import warm_session
from vizpub.ingest.stages import STAGES, STEPS, run_stages
from vizpub.ingest.starting import (
    PUT_BACK,
    RequestedRun,
    StartingPoint,
    check_own_metrics,
    find_start,
)
from vizpub.model.errors import NeedsSettling, UseError
from vizpub.model.progress import Progress, silent
from vizpub.model.tables import table
from vizpub.model.wording import amount, was_or_were
from vizpub.runstore.inputs import all_inputs
from vizpub.runstore.journal import Journal
from vizpub.runstore.leftovers import SCRATCH
from vizpub.runstore.manifest import Manifest, Since, TableEntry
from vizpub.runstore.store import StoredRun, open_run
from vizpub.runstore.stores.place import RunPlace
from vizpub.runstore.writer import RunWriter, writing

_LOG = logging.getLogger(__name__)
_VERSIONS = ("vizpub", "pyspark", "pyarrow", "numba")
"""Packages whose versions a run keeps."""


@dataclass(frozen=True)
class IngestOutcome:
    """The run that an ingest made or found complete."""

    run: StoredRun
    already_complete: bool
    account: Account = field(default_factory=Account)
    """Time that the ingest spent, by part."""


def ingest(request: IngestRequest, progress: Progress = silent) -> IngestOutcome:
    """Make a run, resume an interrupted one, or find that it is complete.

    Raises: InputError and UseError for input or options that cannot be used, InputsDiffer if the
    run exists and was made from something else, RunLocked, StoreBroken, JavaMissing, DiskFull,
    SparkFailed.
    """
    with vizpub_errors(request.workspace):
        return _make_or_rebuild(request, lambda request: _ingest_once(request, progress))


def _make_or_rebuild(
    request: IngestRequest, make: Callable[[IngestRequest], IngestOutcome]
) -> IngestOutcome:
    try:
        return make(request)
    except NeedsSettling:
        if not request.settle:
            raise
        return make(rebuild_request(request))


def settle_run(
    run: StoredRun,
    own_metrics: tuple[OwnFunction, ...],
    master: str | None,
    progress: Progress,
) -> IngestOutcome:
    """Rebuild a run from all of its files, including late records, and then replace the old one.

    Raises: the errors of `ingest`; UseError if files have changed or are gone, or the own metrics
    are not the run's.
    """
    return ingest(settling_request(run, own_metrics, master), progress)


def settling_request(
    run: StoredRun, own_metrics: tuple[OwnFunction, ...] = (), master: str | None = None
) -> IngestRequest:
    """Return the request to rebuild a run with its stored options. Most of its records may be
    refused, as they were the first time.
    """
    check_own_metrics(run.manifest, [one.metric for one in own_metrics])
    stored, directory = run.manifest.options, run.directory
    options = SourceOptions(
        **{of.name: stored.get(of.name, of.default) for of in fields(SourceOptions)}
    )
    request = IngestRequest(
        (),
        run.name,
        directory.parents[1],
        options=options,
        measuring=MeasurementOptions.of(stored, own_metrics),
        keep_going=True,
        master=master,
    )
    return rebuild_request(request)


def rebuild_request(request: IngestRequest) -> IngestRequest:
    """Return the request to rebuild the run from all of its files and those of the request.

    Raises: UseError if files are gone.
    """
    run = open_run(request.workspace, request.run)
    paths = [file["path"] for file in all_inputs(run.directory, run.manifest)]
    attributes = [file["path"] for file in run.manifest.attribute_files]
    needed = [*paths, *attributes]
    if gone := [path for path in needed if "://" not in path and not os.path.exists(path)]:
        raise UseError(
            f"run '{run.name}' cannot be rebuilt: {len(gone)} of {amount(len(needed), 'input')} "
            f"{was_or_were(len(gone))} removed, the first is {gone[0]}; " + PUT_BACK
        )
    return replace(
        request,
        paths=tuple(dict.fromkeys([*paths, *request.paths])),
        source=run.manifest.source,
        attributes=tuple(dict.fromkeys([*attributes, *request.attributes])),
        append=False,
        replace=True,
        settles=run.manifest.input_size,
        collection=run.manifest.collection,
    )


def _ingest_once(request: IngestRequest, progress: Progress) -> IngestOutcome:
    size, account = request.size, Account()
    with writing(request.workspace, request.run) as writer:
        # Inspect a small input before Spark starts: it may be refused, or already be ingested.
        start = _inspect(request, writer, None, account) if is_small(size) else None
        if start and start.complete_run:
            return IngestOutcome(start.complete_run, already_complete=True, account=account)
        with ExitStack() as stack:
            with account.part(START):
                # Java moves rows, which its full compiler makes no faster; GraphFrames computes.
                quick = request.measuring.engine != "graphframes"
                scratch = request.workspace / SCRATCH
                session = warm_session(scratch, master=request.master, quick=quick)
                spark = stack.enter_context(session)
            start = start or _inspect(request, writer, spark, account, progress)
            outcome = _make(spark, writer, request, start, account, progress)
            with account.part(END):
                stack.close()
        return outcome


def ingest_in(
    spark: SparkSession, writer: RunWriter, request: IngestRequest, progress: Progress = silent
) -> IngestOutcome:
    """Make a run like `ingest`, in a given session and into the run of a given writer."""

    def make(request: IngestRequest) -> IngestOutcome:
        small, account = is_small(request.size), Account()
        start = _inspect(request, writer, None if small else spark, account, progress)
        return _make(spark, writer, request, start, account, progress)

    return _make_or_rebuild(request, make)


def _inspect(
    request: IngestRequest,
    writer: RunWriter,
    spark: SparkSession | None,
    account: Account,
    progress: Progress = silent,
) -> StartingPoint:
    """Inspect the input, and decide where the ingest starts."""
    writer.check_owner(request.collection)
    many = None if spark is None or is_local(spark.sparkContext.master) else spark
    with account.part(STEP), watch_progress(many, STEP, progress) if many else nullcontext():
        name, limit = request.source, request.options.max_line
        sources = sources_for(request.options, name)
        inventory = take_inventory(many, request.resolved_paths, sources, name, progress, limit)
        source = find_source(inventory.source)
        check_options(source, request.options)
        if (layers := source.layers(inventory.files)) is not None:
            check_layers(request.measuring.layers, layers)
        side_files = read_attribute_files(request.attributes)
        attribute_files = tuple(file.manifest_entry for file in side_files)
        manifest = Manifest(
            name=request.run,
            source=inventory.source,
            inputs=tuple(file.manifest_entry for file in inventory.files),
            options={**asdict(request.options), **request.measuring.options},
            own=tuple(own_metric.metric for own_metric in request.measuring.measures.own),
            attribute_files=attribute_files,
            collection=request.collection,
            skipped=tuple(f"{path}: {why}" for path, why in inventory.skipped),
            versions={name: version(name) for name in _VERSIONS},
            formats={stage.name: stage.format for stage in STAGES},
        )
        return find_start(writer, RequestedRun(manifest, inventory.files, request))


def _make(
    spark: SparkSession,
    writer: RunWriter,
    request: IngestRequest,
    start: StartingPoint,
    account: Account,
    progress: Progress,
) -> IngestOutcome:
    if start.complete_run:
        return IngestOutcome(start.complete_run, already_complete=True, account=account)
    if request.measuring.engine == "graphframes":  # fail now, not after an hour
        if writer.remote and not is_local(spark.sparkContext.master):
            raise UseError(NO_FRAMES)
        load_graphframes(spark)
    if writer.remote and not is_local(spark.sparkContext.master):
        writer.place = RunPlace(writer.directory, writer.remote.store)
    start.begin()
    manifest = writer.manifest
    assert manifest is not None
    size = sum(file.size for file in start.files)
    alone = is_local(spark.sparkContext.master) and request.measuring.engine != "graphframes"
    small = alone and is_small(size) and (writer.base is None or _is_light(writer.base))
    files = tuple(start.files)
    journal = Journal(writer.directory)
    steps = _StageWatch(spark, writer, account, journal, progress)
    with (
        journal.ingest(_log_entry(manifest)),
        vizpub_errors(request.workspace),
        account.watch_jobs(spark, closely=request.profile),
    ):
        job = Job(spark, writer, request, files, small, account, steps, journal.note)
        try:
            with vizpub_errors(request.workspace):  # an own metric's failure is a UseError, too
                run_stages(job)
        except UseError:
            writer.restore()
            raise
    assert writer.manifest is not None
    run = StoredRun(writer.directory, writer.manifest)
    return IngestOutcome(run, already_complete=False, account=account)


def _is_light(base: Manifest) -> bool:
    """Return True if an append reads few enough rows of the run to be small."""
    assert base.clock is not None
    open_yet = Since("valid_to", end_tick(base.clock))
    parts = (
        part.reaching(open_yet)
        for name, entry in base.tables.items()
        if "valid_to" in table(name).names
        for part in entry.parts
    )
    rows = (part.rows if part.files is None else sum(f.rows for f in part.files) for part in parts)
    return sum(rows) <= SMALL_RUN


def _log_entry(manifest: Manifest) -> str:
    """Return the log's entry for the start of an ingest."""
    size = sum(int(file["size"]) for file in manifest.inputs)
    facts = [
        f"vizpub {manifest.versions.get('vizpub', '')}, process {os.getpid()}",
        f"source {manifest.source}, {amount(len(manifest.inputs), 'file')}, {amount(size, 'byte')}",
    ]
    facts += (
        ["adds to the run"]
        if manifest.extends
        else ["replaces the run"]
        if manifest.replaces
        else []
    )
    facts += [f"resumes after {', '.join(manifest.stages)}"] if manifest.stages else []
    return "; ".join(facts)


@dataclass
class _StageWatch:
    """Context managers around stages: report their progress, and record time and rows."""

    spark: SparkSession
    writer: RunWriter
    account: Account
    journal: Journal
    progress: Progress

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        step, earlier = f"{stage} ({STEPS.index(stage) + 1}/{len(STEPS)})", self._tables()
        with (
            self.account.part(stage),
            self.journal.stage(stage, lambda: self._rows(earlier)),
            report_failed_tasks(self.spark, self._log_failure),
            watch_progress(self.spark, step, self.progress),
        ):
            yield

    def _tables(self) -> dict[str, TableEntry]:
        return self.writer.manifest.tables if self.writer.manifest else {}

    def _rows(self, earlier: dict[str, TableEntry]) -> dict[str, int]:
        """Return the number of rows of each table that is new since `earlier`."""
        tables = self._tables().items()
        return {name: entry.rows for name, entry in tables if earlier.get(name) != entry}

    def _log_failure(self, why: str) -> None:
        _LOG.warning("%s", why)
        self.journal.note(why)
