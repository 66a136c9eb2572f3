"""The start of Java, where something comes between."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest

from vizpub.ingest.spark.jvm import Jvm


def test_java_that_is_not_waited_for_is_killed(tmp_path: Path) -> None:
    """It could not say where it listens, and would listen for ever."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    unused: Any = None
    folder = TemporaryDirectory(dir=tmp_path)
    before = signal.signal(signal.SIGALRM, interrupt)
    with subprocess.Popen(["sleep", "120"]) as java:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises(KeyboardInterrupt):
                Jvm(java, folder, unused).connect(unused)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert java.wait(60) == -signal.SIGKILL
    assert not any(tmp_path.iterdir())
