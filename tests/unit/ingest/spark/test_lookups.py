"""Calls to a JVM that is there, counted where they are sent."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ingest.spark.lookups import remember

pytestmark = pytest.mark.spark


def test_classes_and_methods_are_asked_for_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    send = ClientServerConnection.send_command

    def counted(self: ClientServerConnection, command: str) -> Any:
        asked["lookups" if command.startswith("r\n") else "calls"] += 1
        return send(self, command)

    remember(spark._jvm)
    first = F.col("id") + F.lit(1)
    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    second = F.col("id") + F.lit(1)
    assert asked["calls"] >= 3
    assert asked["lookups"] == 0
    assert spark.range(2).select(first, second).collect() == [(1, 1), (2, 2)]


def test_method_that_java_lacks_is_an_error_each_time(spark: SparkSession) -> None:
    remember(spark._jvm)
    functions = getattr(spark._jvm, "org.apache.spark.sql.functions")
    for _ in range(2):
        with pytest.raises(Py4JError, match="no_such_function"):
            functions.no_such_function()
