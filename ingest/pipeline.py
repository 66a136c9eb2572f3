"""From input to a complete run: the one place that joins the stages.

    parse                    input → the source's staged tables, quarantine
    describe                 staged tables → the clock, what the source cannot know
    observe                  staged tables → what was observed, by the source's names
    index                    names → peers, topics and the numbers of messages
    presence, versions       presence, links, dangling_links, subscriptions, roles
    messages, receptions     traffic, publications, rejections, receptions
    structure                versions → a row per peer or topic and interval
    … metrics                metrics/messages, peers, topics, overlay
    finish                   the run is complete

A stage reads what earlier ones committed and writes tables into fresh directories; they come
into being together when run.json names them. So a process that is killed leaves nothing that
anybody could take for a result, and the next one goes on with the stage that was under way.
A small run is handed from stage to stage in memory and committed in the end (ingest.job); one that
was stopped begins again. A run that is replaced is kept aside until its successor is complete.

A run that is appended to stays what it is until all stages are done for what is new (see
ingest.growth): they read little of what is there, and write only what is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from analytics.interval_graphs import load_graphframes
from ingest.account import END, START, Account
from ingest.cluster import is_local
from ingest.files import find
from ingest.inventory import Inventory, check_options, check_source, inventory
from ingest.job import Job, Measuring
from ingest.manifest import Manifest
from ingest.scale import QUICK_START, is_small, restore, tune
from ingest.session import failures_told
from ingest.sources import SOURCES, source_named
from ingest.sources.base import InputFile, SourceOptions
from ingest.stages import STAGES
from ingest.store import RunWriter, StoredRun, writing
from ingest.warm import warm_session
from ingest.watch import watching
from model.errors import InputsDiffer, UseError
from model.progress import Progress, silent
from model.run import check_run_name

_TIGHTER = 10
"""How many times smaller a Parquet file is than packed lines that say the same, at least."""


@dataclass(frozen=True)
class IngestRequest:
    """What is to become a run."""

    paths: tuple[str, ...]
    run: str
    workspace: Path
    source: str = "auto"
    options: SourceOptions = field(default_factory=SourceOptions)
    measuring: Measuring = field(default_factory=Measuring)
    replace: bool = False
    """Make the run anew if it exists and was made from something else."""
    append: bool = False
    """Add to the run, if it exists, what the files have that it was not made from."""
    master: str | None = None
    """Spark master; null = the environment's, or this machine."""

    def __post_init__(self) -> None:
        """Raises: UseError for what cannot be had together, and what is no name of a run."""
        check_run_name(self.run)
        if self.append and self.replace:
            raise UseError("--append adds to a run, --replace makes it anew: give one of them")


@dataclass(frozen=True)
class IngestOutcome:
    """The run, and whether it was there already."""

    run: StoredRun
    already_complete: bool
    account: Account = field(default_factory=Account)
    """Where the time went."""


def ingest(request: IngestRequest, progress: Progress = silent) -> IngestOutcome:
    """Make the run, or go on with making it, or see that it is made.

    Raises: InputError and UseError for what cannot be taken, InputsDiffer if the run exists
    and was made from something else, RunLocked, StoreBroken, JavaMissing, DiskFull, SparkFailed.
    """
    with failures_told(request.workspace):
        return _ingest(request, progress)


def _ingest(request: IngestRequest, progress: Progress) -> IngestOutcome:
    size, account = _looked_over(request), Account()
    with _leaving_nothing(request), writing(request.workspace, request.run) as writer:
        # What is small is looked at before Spark starts: it may be refused, or be there already.
        start = _look(request, writer, None, account) if is_small(size) else None
        if start and start.made:
            return IngestOutcome(start.made, already_complete=True, account=account)
        with ExitStack() as stack:
            with account.part(START):
                scratch, quick = request.workspace / ".spark", size < QUICK_START
                session = warm_session(scratch, master=request.master, quick=quick)
                spark = stack.enter_context(session)
            start = start or _look(request, writer, spark, account, progress)
            outcome = _make(spark, writer, request, start, account, progress)
            with account.part(END):
                stack.close()
        return outcome


@contextmanager
def _leaving_nothing(request: IngestRequest) -> Iterator[None]:
    """If the run does not begin in the block, it leaves no directory behind."""
    try:
        yield
    finally:
        with suppress(OSError):  # it is not empty
            (request.workspace / "runs" / request.run).rmdir()


def ingest_in(
    spark: SparkSession, writer: RunWriter, request: IngestRequest, progress: Progress = silent
) -> IngestOutcome:
    """`ingest` in a session that is there already, into the run of a writer."""
    small, account = is_small(_looked_over(request)), Account()
    start = _look(request, writer, None if small else spark, account, progress)
    return _make(spark, writer, request, start, account, progress)


@dataclass(frozen=True)
class _Start:
    """Where an ingest begins."""

    files: Sequence[InputFile]
    """What is to be read."""
    made: StoredRun | None
    """The run, if it is complete and there is nothing new."""
    begin: Callable[[], None]
    """Let the run begin, if it has not."""


def _look(
    request: IngestRequest,
    writer: RunWriter,
    spark: SparkSession | None,
    account: Account,
    progress: Progress = silent,
) -> _Start:
    """See what there is to read, and how far the run has come."""
    step = "look at the input"
    with account.part(step), watching(spark, step, progress) if spark else nullcontext():
        found = inventory(spark, request.paths, SOURCES, request.source)
        check_options(source_named(found.source), request.options)
        return _start(writer, request, found)


def _make(
    spark: SparkSession,
    writer: RunWriter,
    request: IngestRequest,
    start: _Start,
    account: Account,
    progress: Progress,
) -> IngestOutcome:
    if start.made:
        return IngestOutcome(start.made, already_complete=True, account=account)
    if request.measuring.engine == "graphframes":
        load_graphframes(spark)  # whether it can be had is better known now than in the end
    start.begin()
    begun = writer.manifest
    assert begun is not None
    inputs = [file.size for file in start.files]
    inputs += [int(file["size"]) for file in writer.base.inputs] if writer.base else []
    alone = is_local(spark.sparkContext.master) and request.measuring.engine != "graphframes"
    small = alone and is_small(sum(inputs))
    files = tuple(start.files)
    job = Job(spark, writer, files, request.options, request.measuring, small, account)
    with account.watched(spark):
        if not _run_stages(job, progress):
            writer.manifest = begun  # nothing was committed
            _run_stages(replace(job, small=False, frames={}), progress)
    assert writer.manifest is not None
    run = StoredRun(writer.directory, writer.manifest)
    return IngestOutcome(run, already_complete=False, account=account)


def _run_stages(job: Job, progress: Progress) -> bool:
    """Whether the run is made; not if it proved to be too large for a small one."""
    before = tune(job.spark, job.small)
    try:
        for number, stage in enumerate(STAGES, start=1):
            if stage.shares or stage.name not in job.manifest.stages:
                step = f"{stage.name} ({number}/{len(STAGES)})"
                with job.account.part(stage.name), watching(job.spark, step, progress):
                    stage.run(job)
            if job.outgrown:
                return False
        return True
    except UseError:
        job.close()
        job.writer.restore()
        raise
    finally:
        job.close()
        restore(job.spark, before)


def _looked_over(request: IngestRequest) -> int:
    """Bytes of input, as of packed lines. What is plainly wrong is said before Spark starts.

    Raises: as inventory, for a source or a path there is not.
    """
    check_source(request.source, SOURCES)
    found = find(request.paths).values()
    files = dict(chain(*(path.files.items() for path in found)))
    return sum(
        _TIGHTER * file.size if name.endswith(".parquet") else file.size
        for name, file in files.items()
    )


def _start(writer: RunWriter, request: IngestRequest, found: Inventory) -> _Start:
    """Take up the run where it stands, or begin it."""
    fresh, old = _new_manifest(request, found), writer.manifest
    if request.append and old is not None and old.complete:
        return _append(writer, fresh, old, found.files)
    if old is not None:
        differences = _differences(old, fresh)
        left_out = request.append and _contents(old) - _contents(fresh)
        if differences and not request.replace and (old.complete or left_out):
            raise InputsDiffer(request.run, differences)
        # Half a run of something else, or of another version, is not gone on with.
        if not differences and (old.versions == fresh.versions or old.complete > request.replace):
            made = StoredRun(writer.directory, old) if old.complete else None
            return _Start(found.files, made, lambda: None)
    return _Start(found.files, None, partial(writer.begin, fresh))


def _append(
    writer: RunWriter, fresh: Manifest, old: Manifest, files: Sequence[InputFile]
) -> _Start:
    """Add to the run the files that it was not made from."""
    if differences := _other_choices(old, fresh):
        raise InputsDiffer(old.name, differences)
    known = _contents(old)
    new = [file for file in files if (Path(file.path).name, file.sha256) not in known]
    if not new:
        return _Start(new, StoredRun(writer.directory, old), lambda: None)
    _check_appendable(old)
    grown = replace(
        fresh,
        inputs=(*old.inputs, *map(_told, new)),
        skipped=tuple(dict.fromkeys([*old.skipped, *fresh.skipped])),
        extends=old.identity,
    )
    pending = writer.pending()
    if pending and (left_out := _contents(pending) - _contents(grown)):
        raise UseError(
            f"files were being added to run '{old.name}' when that was stopped; name them too: "
            + ", ".join(sorted(name for name, _ in left_out))
        )
    if pending is None or _differences(pending, grown) or pending.versions != grown.versions:
        pending = grown
    return _Start(new, None, partial(writer.extend, pending))


def _check_appendable(run: Manifest) -> None:
    """Raises: UseError where more input cannot be added to the run."""
    why = None
    if not source_named(run.source).appendable:
        why = f"in source '{run.source}' later input changes what was said of earlier times"
    elif run.ended:
        why = "its source marks its end"
    elif run.options.get("reporters_only"):
        why = "--reporters-only left out links to peers that may report later"
    elif not run.carry:
        why = "an earlier version made it, and kept nothing to go on from"
    elif run.versions.get("vizpub") != version("vizpub"):
        why = f"version {run.versions.get('vizpub')} made it"
    if why:
        raise UseError(
            f"run '{run.name}' cannot be appended to: {why}; "
            "ingest all files of the run anew with --replace"
        )


def _new_manifest(request: IngestRequest, found: Inventory) -> Manifest:
    return Manifest(
        name=request.run,
        source=found.source,
        inputs=tuple(map(_told, found.files)),
        options={**asdict(request.options), **request.measuring.options},
        skipped=tuple(f"{path}: {why}" for path, why in found.skipped),
        versions={name: version(name) for name in ("vizpub", "pyspark", "pyarrow", "numba")},
    )


def _told(file: InputFile) -> dict[str, Any]:
    """What run.json says of a file."""
    return {name: value for name, value in asdict(file).items() if name != "stamp"}


def _differences(old: Manifest, new: Manifest) -> list[str]:
    """What a run was made from and what it would be made from now, in words."""
    found, before, now = _other_choices(old, new), _contents(old), _contents(new)
    if before != now:
        added, gone = (now - before).total(), (before - now).total()
        found.append(f"{added} files new or changed, {gone} gone")
    return found


def _other_choices(old: Manifest, new: Manifest) -> list[str]:
    """Options and source that differ, in words."""
    found = [
        f"{key}: {old.options.get(key)} then, {value} now"
        for key, value in new.options.items()
        if old.options.get(key) != value
    ]
    if old.source != new.source:
        found.append(f"source: {old.source} then, {new.source} now")
    return found


def _contents(run: Manifest) -> Counter[tuple[str, str]]:
    """The files by name and content; where they lie does not matter."""
    return Counter((Path(f["path"]).name, f["sha256"]) for f in run.inputs)
