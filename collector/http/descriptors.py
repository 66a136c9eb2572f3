"""Open files and connections: a system allows a process fewer than it could."""

from __future__ import annotations

import resource
from contextlib import suppress


def allow(most: int) -> None:
    """Let this process have so many, or as many as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
