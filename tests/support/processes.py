"""Processes that a test looks for."""

from __future__ import annotations

from contextlib import suppress

import psutil


def children(word: str) -> list[psutil.Process]:
    """This process's own whose command has the word. Other tests may have left some that ended."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.ZombieProcess):
            if word in child.cmdline():
                found.append(child)
    return found
