"""What tests share: one Spark session, and data that need not be there."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where the tests are started in the background, an interrupt is ignored, and would be by every
# program they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables are cut to this width, where it is set; who runs several processes of tests sets it.
os.environ.pop("COLUMNS", None)

OF_SHARED_RUNS = ("test_pipeline", "test_notebook", "test_python_page")
"""What looks at the runs of tests/integration/ingested.py, which are dear."""

DATA = Path(__file__).parent / "data"
GUIDE = Path(__file__).parents[1] / "simulators" / "README.md"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several processes (`-n 2`) a file stays in one of them, for its fixtures."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "shared runs" if Path(file).stem in OF_SHARED_RUNS else str(file)

    return Scheduling(config, log)


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
    """The system that simulators/README.md writes."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    return str(code)


@pytest.fixture(scope="session")
def outside_data() -> Callable[[str], Path]:
    """A file of VIZPUB_DATA by name; the test is skipped where there is none."""

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
    from ingest.session import spark_session

    scratch = tmp_path_factory.mktemp("spark")
    with spark_session(scratch, master="local[2]", quick=True) as session:
        yield session
