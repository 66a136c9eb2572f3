"""The process that Python workers are forked from."""

from __future__ import annotations

import json
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


def test_daemon_is_for_workers_of_our_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(master: str, python: str | None) -> str | None:
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
        if python:
            monkeypatch.setenv("PYSPARK_PYTHON", python)
        conf = SparkConf(loadDefaults=False).setMaster(master)
        session._choose_python(conf)
        return conf.get("spark.python.daemon.module")

    assert chosen("local[2]", None) == "vizpub.ingest.spark.worker_daemon"
    assert chosen("local[2]", "/usr/bin/python3") is None
    assert chosen("spark://10.0.0.1:7077", None) is None
