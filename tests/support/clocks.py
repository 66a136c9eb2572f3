"""A clock of the machine that was set."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest


@contextmanager
def clock_set(seconds: float) -> Iterator[None]:
    """In the block it is so much later than before, for Python and for psutil: what lives seems to
    have begun later, too, because the kernel counts from the start of the machine.
    """
    really, booted = time.time, psutil.boot_time()
    before = psutil.Process(os.getpid()).create_time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: really() + seconds)
        patch.setattr("psutil._pslinux.boot_time", lambda: booted + seconds)
        assert psutil.Process(os.getpid()).create_time() == pytest.approx(before + seconds, abs=1)
        yield
