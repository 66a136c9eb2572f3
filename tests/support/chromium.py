"""A real Chromium: found on this machine, or the test is skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ALONE = (
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
    # No name but this machine's is found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
"""Switches with which it asks nobody but servers of this machine."""


@contextmanager
def chromium() -> Iterator[Callable[..., Browser]]:
    """Starts browsers with further switches; they end with the block. Blocks cannot be nested."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no Chromium: none of {', '.join(NAMES)} is installed")
    with sync_playwright() as playwright:
        yield lambda *switches: playwright.chromium.launch(
            executable_path=found, args=[*ALONE, *switches]
        )
