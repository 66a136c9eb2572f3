"""A workspace in a store, and machines that have copies of it."""

from __future__ import annotations

from tests.support.hdfs import one_cluster
from tests.support.object_store import machine, one_server, server, url, workspace

__all__ = ["machine", "one_cluster", "one_server", "server", "url", "workspace"]
