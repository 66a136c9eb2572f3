"""How the Java of a session is started, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vizpub.machine.jvm.class_data import find_archive

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
SESSION = """
import sys
from pathlib import Path

import psutil

from vizpub.ingest.spark.session import spark_session

with spark_session(Path(sys.argv[1]), master="local[1]", quick=True) as spark:
    # What does no more is no pattern for an archive, and none is made.
    count = spark.range(7).groupBy("id").count().count() if "count" in sys.argv else 7
    (java,) = (p for p in psutil.Process().children() if p.name() == "java")
    maps = " ".join({m.path for m in java.memory_maps() if m.path.endswith(".jsa")})
    print(count, maps, *java.cmdline(), sep="\\n")

if "again" in sys.argv:  # in the same Java, as a simulation and then the ingest of its runs
    with spark_session(Path(sys.argv[1]), master="local[1]", quick=True) as spark:
        assert spark.sparkContext.defaultParallelism == 1
"""
MADE_S = 600


def session(tmp_path: Path, *work: str, **environment: str) -> tuple[str, list[str]]:
    """Archives that a session's Java has mapped, and its command; it said no more."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK", "PYSPARK"))}
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(tmp_path / "scratch"), *work],
        cwd=ROOT,
        env={**plain, "VIZPUB_CACHE": str(tmp_path / "cache"), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    count, maps, *command = done.stdout.splitlines()
    assert count == "7"
    assert done.stderr == ""
    return maps, command


def kinds(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "spark").iterdir())


@pytest.mark.long
def test_session_lists_its_classes_and_starts_again_in_the_same_java(tmp_path: Path) -> None:
    _, directly = session(tmp_path, "again")
    listing = [word for word in directly if word.startswith("-XX:DumpLoadedClassList=")]
    assert len(listing) == 1
    assert "org.apache.spark.deploy.SparkSubmit" in directly


@pytest.mark.long
def test_session_without_a_usable_cache_has_the_command_of_one_with_it(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no directory")
    _, by_spark = session(tmp_path)
    (tmp_path / "cache").unlink()
    _, directly = session(tmp_path)
    listing = [word for word in directly if word.startswith("-XX:DumpLoadedClassList=")]
    assert len(listing) == 1
    assert [word for word in directly if word not in listing] == by_spark, "the same command"


@pytest.mark.long
def test_session_whose_kept_command_fails_is_started_by_spark(tmp_path: Path) -> None:
    _, directly = session(tmp_path)
    (kind,) = kinds(tmp_path)
    (kind / "command").write_text("\0".join(["false", "org.apache.spark.deploy.SparkSubmit"]))
    by_spark = session(tmp_path)[1]
    assert set(directly) - set(by_spark) == {w for w in directly if "DumpLoadedClassList" in w}


@pytest.mark.long
def test_class_archive_of_one_session_serves_the_next(tmp_path: Path) -> None:
    session(tmp_path, "count")
    (kind,) = kinds(tmp_path)
    deadline = time.monotonic() + MADE_S
    while not (archive := find_archive(kind)):
        assert time.monotonic() < deadline, list(kind.iterdir())
        time.sleep(0.2)
    mapped, command = session(tmp_path)
    assert mapped == str(archive)
    assert f"-XX:SharedArchiveFile={archive}" in command
    assert kinds(tmp_path) == [kind]
    session(tmp_path, VIZPUB_SPARK_MEMORY="1g")
    assert len(kinds(tmp_path)) == 2, "another kind for other flags"
