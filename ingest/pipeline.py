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
A run that is replaced is kept aside until its successor's input is described.

A run that is appended to stays what it is until all stages are done for what is new (see
ingest.growth): they read little of what is there, and write only what is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

from analytics.interval_graphs import load_graphframes
from ingest.inventory import Inventory, check_options, check_source, expand, inventory
from ingest.job import Job, Measuring
from ingest.manifest import Manifest
from ingest.session import failures_told, spark_session
from ingest.sources import SOURCES, source_named
from ingest.sources.base import InputFile, SourceOptions
from ingest.stages import STAGES
from ingest.store import RunWriter, StoredRun, writing
from ingest.watch import watching
from model.errors import InputsDiffer, UseError
from model.progress import Progress, silent

_SMALL = 64 * 2**20
"""Bytes of input below which Spark's start costs more than its full compiler saves."""
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
        """Raises: UseError for what cannot be had together."""
        if self.append and self.replace:
            raise UseError("--append adds to a run, --replace makes it anew: give one of them")


@dataclass(frozen=True)
class IngestOutcome:
    """The run, and whether it was there already."""

    run: StoredRun
    already_complete: bool


def ingest(request: IngestRequest, progress: Progress = silent) -> IngestOutcome:
    """Make the run, or go on with making it, or see that it is made.

    Raises: InputError and UseError for what cannot be taken, InputsDiffer if the run exists
    and was made from something else, RunLocked, StoreBroken, JavaMissing, DiskFull, SparkFailed.
    """
    with failures_told(request.workspace):
        return _ingest(request, progress)


def _ingest(request: IngestRequest, progress: Progress) -> IngestOutcome:
    scratch, quick = request.workspace / ".spark", _looked_over(request) < _SMALL
    with (
        writing(request.workspace, request.run) as writer,
        spark_session(scratch, master=request.master, quick=quick) as spark,
    ):
        return ingest_in(spark, writer, request, progress)


def ingest_in(
    spark: SparkSession, writer: RunWriter, request: IngestRequest, progress: Progress = silent
) -> IngestOutcome:
    """`ingest` in a session that is there already, into the run of a writer."""
    if request.measuring.engine == "graphframes":
        load_graphframes(spark)  # whether it can be had is better known now than in the end
    with watching(spark, "look at the input", progress):
        found = inventory(spark, request.paths, SOURCES, request.source)
    check_options(source_named(found.source), request.options)
    files, already = _begin(writer, request, found)
    job = Job(spark, writer, tuple(files), request.options, request.measuring)
    try:
        _run_stages(job, progress)
    except UseError:
        writer.restore()
        raise
    return IngestOutcome(StoredRun(writer.directory, job.manifest), already)


def _run_stages(job: Job, progress: Progress) -> None:
    for number, stage in enumerate(STAGES, start=1):
        if stage.name not in job.manifest.stages:
            with watching(job.spark, f"{stage.name} ({number}/{len(STAGES)})", progress):
                stage.run(job)


def _looked_over(request: IngestRequest) -> int:
    """Bytes of input, as of packed lines. What is plainly wrong is said before Spark starts.

    Raises: as inventory, for a source or a path there is not.
    """
    check_source(request.source, SOURCES)
    sizes = {name: size for path in request.paths for name, size in expand(path).items()}
    return sum(
        _TIGHTER * size if file.endswith(".parquet") else size for file, size in sizes.items()
    )


def _begin(
    writer: RunWriter, request: IngestRequest, found: Inventory
) -> tuple[list[InputFile], bool]:
    """Take up the run where it stands, or begin it. The files to read, whether it was complete."""
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
            return found.files, old.complete
    writer.begin(fresh)
    return found.files, False


def _append(
    writer: RunWriter, fresh: Manifest, old: Manifest, files: Sequence[InputFile]
) -> tuple[list[InputFile], bool]:
    """Add to the run the files that it was not made from; whether there are none."""
    if differences := _other_choices(old, fresh):
        raise InputsDiffer(old.name, differences)
    known = _contents(old)
    new = [file for file in files if (Path(file.path).name, file.sha256) not in known]
    if not new:
        return new, True
    _check_appendable(old)
    grown = replace(
        fresh,
        inputs=(*old.inputs, *map(asdict, new)),
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
    writer.extend(pending)
    return new, False


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
        inputs=tuple(asdict(file) for file in found.files),
        options={**asdict(request.options), **request.measuring.options},
        skipped=tuple(f"{path}: {why}" for path, why in found.skipped),
        versions={name: version(name) for name in ("vizpub", "pyspark", "pyarrow", "numba")},
    )


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
