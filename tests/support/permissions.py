"""What a user may not do, also where root runs the tests."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION = 0x20080522
_READ_AND_WRITE_ALL = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, see capabilities(7)."""


@contextmanager
def as_a_user() -> Iterator[None]:
    """In the block, permissions of files hold for this thread as for any user."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    before, now = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    now[:] = before[:]
    now[0] &= ~_READ_AND_WRITE_ALL  # effective
    assert libc.capset(header, now) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0
