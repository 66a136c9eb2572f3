"""A workspace in an object store, and machines that have copies of it."""

from __future__ import annotations

from tests.support.object_store import machine, one_server, server, url, workspace

__all__ = ["machine", "one_server", "server", "url", "workspace"]
