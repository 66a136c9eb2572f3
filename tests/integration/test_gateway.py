"""Calls to a JVM that is there, counted or interrupted where they are sent."""

from __future__ import annotations

import logging
import socket
from collections import Counter, deque
from threading import current_thread
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from vizpub.ingest.spark.gateway import mend_gateway

pytestmark = pytest.mark.spark


def test_classes_and_methods_are_asked_for_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    send = ClientServerConnection.send_command

    def counted(self: ClientServerConnection, command: str) -> Any:
        asked["lookups" if command.startswith("r\n") else "calls"] += 1
        return send(self, command)

    mend_gateway(spark.sparkContext)
    first = F.col("id") + F.lit(1)
    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    second = F.col("id") + F.lit(1)
    assert asked["calls"] >= 3
    assert asked["lookups"] == 0
    assert spark.range(2).select(first, second).collect() == [(1, 1), (2, 2)]


def test_method_that_java_lacks_is_an_error_each_time(spark: SparkSession) -> None:
    mend_gateway(spark.sparkContext)
    functions = getattr(spark._jvm, "org.apache.spark.sql.functions")
    for _ in range(2):
        with pytest.raises(Py4JError, match="no_such_function"):
            functions.no_such_function()


def test_interrupted_command_leaves_its_answer_to_no_other(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    mend_gateway(spark.sparkContext)
    send = ClientServerConnection.send_command

    class Interrupted(BaseException):
        pass

    def sent(self: ClientServerConnection, command: str) -> Any:
        monkeypatch.undo()
        self.socket.sendall(command.encode())
        raise Interrupted

    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    once = client.send_command
    mend_gateway(spark.sparkContext)
    assert client.send_command is once
    for _ in range(3):
        monkeypatch.setattr(ClientServerConnection, "send_command", sent)
        with pytest.raises(Interrupted) as held:  # a traceback holds the connection
            spark.range(5).count()
        assert ClientServerConnection.send_command is send
        assert spark.range(7).count() == 7
        assert held


def test_interrupt_stays_one_where_java_has_closed_another_connection(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """py4j compares the sockets of all connections then."""

    def interrupted(self: ClientServerConnection, command: str) -> Any:
        raise KeyboardInterrupt

    mend_gateway(spark.sparkContext)
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    with socket.socket() as closed, monkeypatch.context() as broken:
        broken.setattr(client, "deque", deque([SimpleNamespace(socket=closed)]))
        broken.setattr(ClientServerConnection, "send_command", interrupted)
        with pytest.raises(KeyboardInterrupt):
            spark.range(2)
    assert spark.range(2).count() == 2


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("Answer from Java side is empty"), KeyboardInterrupt()]
)
def test_lost_connection_is_logged_by_nobody(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    """py4j would print a traceback before the line that tells it."""

    here, send = current_thread(), ClientServerConnection.send_command

    def lost(self: ClientServerConnection, command: str) -> Any:
        if current_thread() is not here:  # what is garbage in Python is let go in Java, too
            return send(self, command)
        raise error

    mend_gateway(spark.sparkContext)
    for _ in range(20):  # Java may close the next connection, too
        with monkeypatch.context() as broken:
            broken.setattr(ClientServerConnection, "send_command", lost)
            with pytest.raises((Py4JError, KeyboardInterrupt)):
                spark.range(2)
        assert spark.range(2).count() == 2
    logging.error("others are heard")
    assert [record.message for record in caplog.records] == ["others are heard"]
