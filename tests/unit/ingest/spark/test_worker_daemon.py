"""The process that Python workers are forked from."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from pyspark import SparkConf

from vizpub.ingest.spark import session
from vizpub.ingest.spark.worker_daemon import IMPORTED

_TOLD = """
import json, os, sys
from vizpub.ingest.spark.worker_daemon import IMPORTED, preload
print("before")
preload()
threads = len(os.listdir("/proc/self/task"))
print(json.dumps([threads, [name for name in IMPORTED if name not in sys.modules]]))
"""


def test_preloading_imports_all_and_starts_no_thread() -> None:
    assert IMPORTED
    done = subprocess.run([sys.executable, "-c", _TOLD], stdout=subprocess.PIPE, check=True)
    before, told = done.stdout.decode().splitlines()
    assert before == "before"
    assert json.loads(told) == [1, []]


def test_workers_on_this_machine_have_our_own_python_and_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def choose(master: str, python: str) -> tuple[str, str | None]:
        monkeypatch.setenv("PYSPARK_PYTHON", python)
        conf = SparkConf(loadDefaults=False).setMaster(master)
        session._choose_python(conf)
        return os.environ["PYSPARK_PYTHON"], conf.get("spark.python.daemon.module")

    daemon = "vizpub.ingest.spark.worker_daemon"
    assert choose("local[2]", "/opt/other/python3") == (sys.executable, daemon)
    assert choose("spark://10.0.0.1:7077", "/opt/python3") == ("/opt/python3", None)
