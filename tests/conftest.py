"""What tests share: their names, order and skips, one Spark session, outside data."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import typer

from tests.support import ids, skips

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests that are started in the background ignore an interrupt, and so would every program that
# they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables are cut to this width, which a runner of tests may set. Python's readline, which pytest
# imports, sets it for all processes that are started, and os.environ does not show it.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

pytest_plugins = ["tests.support.selection"]

DATA = Path(__file__).parent / "data"
GUIDE = Path(__file__).parents[1] / "simulators" / "README.md"


# One profile for all. Examples are the same in every run, as seeds are; no test asserts a time.
hypothesis.settings.register_profile(
    "vizpub",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("vizpub")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    return ids.id_of(val, argname)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while ten thousand tests are collected, nor among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Let what was collected go: some libraries print what is left of theirs in the end."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ids.refuse_addresses(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return skips.judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return skips.judged((yield))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several processes (`-n 2`) a file stays in one of them, for its fixtures."""
    from tests.support.scheduling import Scheduling

    config.option.loadscopereorder = False  # `Scheduling` has an order
    return Scheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def no_late_readers() -> Iterator[None]:
    """What a commit lets go is removed at once; tests of its readers change that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vizpub.runstore.leftovers.KEPT_SECONDS", 0)
        yield


@pytest.fixture(scope="session", autouse=True)
def held_locks_are_refused_at_once() -> Iterator[None]:
    """Of runs and collections: nobody sweeps there, but in tests of that, which wait as long as
    commands do.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in ("run_lock", "collection"):
            patch.setattr(f"vizpub.runstore.{module}.SWEPT_S", 0.05)
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """A CliRunner makes all commands anew for each call, which takes longer than most calls do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk() -> Iterator[None]:
    """Sync nothing: no test cuts the power, and those of power cuts record what is synced."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def servers_end_at_once() -> Iterator[None]:
    """Let uvicorn, which looks every 100 ms whether to end, and then waits as long, look often."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 20)

    with pytest.MonkeyPatch.context() as patch:
        often = SimpleNamespace(**(vars(asyncio) | {"sleep": sleep}))
        patch.setattr("uvicorn.server.asyncio", often)
        yield


@pytest.fixture(scope="session")
def libp2p_small() -> Path:
    """A gossipsub network's traces and the truth recorded beside them; see its README."""
    return DATA / "libp2p_small"


@pytest.fixture(scope="session")
def gephi_small() -> Path:
    """An overlay history and what Gephi's toolkit computes for it; see its README."""
    return DATA / "gephi_small"


@pytest.fixture(scope="session")
def guide_code() -> str:
    """The system that simulators/README.md develops."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    return str(code)


@pytest.fixture(scope="session")
def outside_data() -> Callable[[str], Path]:
    """A file of VIZPUB_DATA by name; the test is skipped if it does not exist."""

    def find(name: str) -> Path:
        folder = os.environ.get("VIZPUB_DATA")
        if not folder:
            pytest.skip("VIZPUB_DATA is not set: data under other licences is not shipped")
        path = Path(folder) / name
        if not path.exists():
            pytest.skip(f"{name} is not in VIZPUB_DATA")
        return path

    return find


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A real Spark on this machine, with the JVM tuned for a quick start."""
    from vizpub.ingest.spark.session import spark_session

    scratch = tmp_path_factory.mktemp("spark")
    with spark_session(scratch, master="local[2]", quick=True) as session:
        yield session
