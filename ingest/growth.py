"""What an append takes from the run it adds to, and where what it makes anew begins.

Each function gives back all that it is given where a run is made from all of its input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.restored import restored
from ingest import dense
from ingest.job import Job
from ingest.manifest import Boundary
from ingest.versions import close_at
from model.clock import Clock
from model.errors import UseError


def check_telling(before: Sequence[str], now: Sequence[str]) -> None:
    """Raises: UseError where new input tells what the run has no table or column for."""
    for names, what in ((set(before) - set(now), "tells of"), (set(now) - set(before), "hides")):
        if names:
            raise UseError(
                f"the new input {what} {', '.join(sorted(names))}, unlike that of the run; "
                "ingest all files of the run anew with --replace"
            )


def unsettled(job: Job, observed: DataFrame) -> DataFrame:
    """Without the spans that the run has already, as they were over before this ingest."""
    spans = job.base is not None and "vt" in observed.columns
    return observed.where(F.col("vt") >= job.since) if spans else observed


def known_names(job: Job, name: str, *columns: str) -> dense.Known | None:
    """The indices that the run has given already; null where there is none before."""
    if job.base is None or (frame := job.before(name)) is None:
        return None
    return dense.Known(frame.selectExpr(*columns), job.base.tables[name].rows)


def find_boundary(job: Job, observed: Mapping[str, DataFrame]) -> Boundary:
    """Where what is new begins: the earliest message that new input names, or that was published
    in an interval which is not settled, and the first interval of it and all after it.
    """
    published, since = job.before("publications"), job.since
    if published is None or job.base is None:
        return Boundary(since, since, 0)
    named = dense.message_index(observed).select(F.col("name").alias("key"))
    touched = published.join(named, "key").select("message")
    open_yet = published.where(F.col("interval") >= since).select("message")
    first = _least(touched.unionAll(open_yet), job.base.tables["publications"].rows)
    of_them = [
        frame.where(F.col("message") >= first).select("interval")
        for name in ("publications", "receptions", "rejections")
        if (frame := job.before(name)) is not None
    ]
    return Boundary(since, _least(reduce(DataFrame.unionAll, of_them), since), first)


def _least(rows: DataFrame, limit: int) -> int:
    """The least value of the only column; not more than a limit."""
    row = rows.agg(F.min(rows.columns[0])).first()
    return limit if row is None or row[0] is None else min(int(row[0]), limit)


def carried_in(job: Job, name: str) -> DataFrame:
    """The versions of the run that may yet change, as far as they were observed."""
    assert job.base is not None
    assert job.base.clock is not None
    versions = job.before(name)
    assert versions is not None
    return close_at(versions.where(F.col("vt") >= job.since), end_of(job.base.clock))


def end_of(clock: Clock) -> int:
    """The tick after the last interval."""
    return clock.sampling_tick(clock.last) + 1


def observed_of_messages(job: Job) -> dict[str, DataFrame]:
    """What was observed of the messages from the boundary on, now and before."""
    observed = job.staged("observed")
    if job.base is None:
        return observed
    found = {}
    for name in ("publications", "receptions", "rejections", "untold"):
        parts = [job.before(f"observed.{name}"), observed.get(name)]
        known = [part.where(F.col("interval") >= job.boundary.interval) for part in parts if part]
        if known:
            found[name] = reduce(DataFrame.unionByName, known)
    names = job.staged("index").get("messages")
    if names is None:
        return found
    taken = names.select(F.col("name").alias("message"))
    return {
        name: rows.join(taken, "message", "left_semi") if "message" in rows.columns else rows
        for name, rows in found.items()
    }


def alive(job: Job, name: str) -> DataFrame | None:
    """The versions of a table that were alive at some tick from the boundary on."""
    versions = job.table(name)
    if versions is None or job.base is None:
        return versions
    return versions.where(F.col("vt") > job.boundary.interval * job.clock.ticks_per_interval)


def recent(job: Job, rows: DataFrame | None) -> DataFrame | None:
    """The rows of the intervals from the boundary on."""
    if rows is None or job.base is None:
        return rows
    return rows.where(F.col("interval") >= job.boundary.interval)


def structure_from_boundary(job: Job) -> DataFrame | None:
    """The structure from the boundary on: what was measured now, and what is settled."""
    measured = job.table("staged/structure")
    if measured is None or job.boundary.interval >= job.since:
        return measured
    tables = (job.before(f"metrics/{name}") for name in ("peers", "topics", "overlay"))
    peers, topics, overlay = (
        rows.where(F.col("interval").between(job.boundary.interval, job.since - 1))
        for rows in tables
        if rows is not None
    )
    return measured.unionByName(restored(peers, topics, overlay))
