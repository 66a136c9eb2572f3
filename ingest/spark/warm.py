"""A Spark session for an ingest: the workspace's running session, or a new one."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from vizpub.ingest.spark.gateway import mend_gateway
from vizpub.ingest.spark.jvm import gateway_variables
from vizpub.ingest.spark.session import spark_session
from vizpub.ingest.spark.staying import (
    SessionLease,
    SessionNotUsable,
    configured_elsewhere,
    lease_session,
)
from vizpub.machine.environment import environment
from vizpub.model.errors import UseError

UNUSED = "the running session is not used"

_LOG = logging.getLogger(__name__)


@contextmanager
def warm_session(
    scratch: Path, *, master: str | None = None, quick: bool = False
) -> Iterator[SparkSession]:
    """Yield the workspace's running session if possible, otherwise a new one for the block.

    Logs the reason why the running one is not used. Work in it must use absolute paths, and no code
    but
    vizpub's: its workers have another working directory, and may have state of earlier commands.
    """
    with _borrowed_session(scratch, master, quick=quick) as borrowed:
        if borrowed:
            yield borrowed
            return
    with spark_session(scratch, master=master, quick=quick) as session:
        yield session


@contextmanager
def _borrowed_session(
    scratch: Path, master: str | None, *, quick: bool
) -> Iterator[SparkSession | None]:
    leased = None if SparkContext._gateway else _try_lease(scratch, master, quick=quick)
    if leased is None:
        yield None
        return
    with leased.end:
        spark = _attach(leased)
        try:
            yield spark
        finally:
            if spark:
                _detach()


def _try_lease(scratch: Path, master: str | None, *, quick: bool) -> SessionLease | None:
    """Lease the workspace's session for this command; null if that is not possible."""
    try:
        if (
            reason := "--master is given"
            if master
            else configured_elsewhere() and f"{configured_elsewhere()} is set"
        ):
            _LOG.info("a session would not be used: %s", reason)
        elif not quick:
            _LOG.info("a session would not be used: it is not for GraphFrames")
        else:
            return lease_session(scratch)
    except (SessionNotUsable, UseError) as error:
        _LOG.warning("%s: %s", UNUSED, error)
    return None


def _attach(leased: SessionLease) -> SparkSession | None:
    """Create a SparkSession in the JVM of the lease; null if the JVM has ended."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        gateway = _gateway(leased)
        ours = getattr(gateway.jvm, "org.apache.spark.sql.classic.SparkSession")
        session = ours.getDefaultSession().get()
        jsc = gateway.jvm.JavaSparkContext(session.sparkContext())
        conf = SparkConf(_jvm=gateway.jvm, _jconf=jsc.getConf())
        context = SparkContext(conf=conf, gateway=gateway, jsc=jsc)
        mend_gateway(context)
        return SparkSession(context, session.cloneSession())  # with what it was fitted to
    except (Py4JError, OSError) as error:
        _LOG.warning("the session has died (%s): starting another Spark", error)
        _detach()
        return None


def _gateway(leased: SessionLease) -> Any:
    with environment(gateway_variables(leased.port, leased.secret)):
        return launch_gateway()  # type: ignore[no-untyped-call]


def _detach() -> None:
    """Drop references to the JVM as SparkSession.stop does, but leave it running."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context:
        context._jsc = None  # or stop() would stop it for everybody
        context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    if gateway:
        with suppress(Py4JError, OSError):
            gateway.close(keep_callback_server=True)
