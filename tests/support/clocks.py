"""A machine whose clock was set."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest


@contextmanager
def clock_set(seconds: float) -> Iterator[None]:
    """Inside the block it is that much later, for Python and for psutil: living processes seem to
    have started later too, because the kernel counts from the start of the machine."""
    really, booted = time.time, psutil.boot_time()
    before = psutil.Process(os.getpid()).create_time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: really() + seconds)
        patch.setattr("psutil._pslinux.boot_time", lambda: booted + seconds)
        assert psutil.Process(os.getpid()).create_time() == pytest.approx(before + seconds, abs=1)
        yield
