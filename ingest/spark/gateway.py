"""PySpark's gateway to Java, mended for commands that are short or end early."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from py4j.clientserver import JavaClient
from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import Py4JNetworkError

if TYPE_CHECKING:
    from pyspark import SparkContext

_CLASSES = (
    "PythonSQLUtils",
    "PythonUtils",
    "functions",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.functions",
)


_PAUSES = (0.05, 0.2, 1.0)
"""Seconds between attempts to connect."""


def mend_gateway(context: SparkContext) -> None:
    """Let the gateway of a context remember, be interrupted, and end at once."""
    gateway: Any = context._gateway
    # py4j logs tracebacks at the root where Java has ended or a signal has come. A line where the
    # error is handled says what happened.
    logging.getLogger().addFilter(_is_of_others)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # PySpark asks for the class and the method of each column that it makes: a quarter of
    # all its calls.
    for name in _CLASSES:
        java_class = getattr(gateway.jvm, name)
        java_class.__class__ = _CachingClass
        gateway.jvm.__dict__[name] = java_class
    _close_interrupted(gateway._gateway_client)
    # The server of accumulators looks once a second whether it is to end. Its thread is a daemon:
    # it is not waited for, and silent where Java has ended before it.
    server = context._accumulatorServer
    vars(server)["handle_error"] = lambda *_: None
    vars(server)["shutdown"] = Thread(target=server.shutdown, daemon=True).start


def _is_of_others(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


class _CachingClass(JavaClass):  # type: ignore[misc]
    """A Java class that caches its static methods."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


def _close_interrupted(client: JavaClient) -> None:
    """Close a thread's connection when a signal interrupts a command.

    Otherwise the next command, maybe of the clearing up, would read the answer of this one. While
    Java notices that a connection is closed, it may close the next one, too, before it answers.
    """
    if "send_command" in vars(client):
        return  # a process has one gateway, and may have several sessions
    send, connect = client.send_command, client._create_new_connection

    def connect_again() -> Any:
        for pause in _PAUSES:
            try:
                return connect()
            except Py4JNetworkError:
                time.sleep(pause)
        return connect()

    def send_or_close(*command: Any, **options: Any) -> Any:
        try:
            return send(*command, **options)
        except BaseException as error:
            if connection := client.get_thread_connection():
                connection.close()
            # After an interrupt py4j looks at all sockets, and Java may have closed one.
            if isinstance(error, OSError) and isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise

    vars(client)["send_command"] = send_or_close
    vars(client)["_create_new_connection"] = connect_again
