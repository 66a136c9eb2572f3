"""`vizpub live watch lab` as a process of its own, and what it shows."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0


@dataclass
class Watching:
    """The process, and all that it wrote to both streams."""

    process: subprocess.Popen[bytes]
    written: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        return self.written.decode("utf-8", "replace")

    def until(self, part: str) -> None:
        """It shows this."""
        end = time.monotonic() + PATIENCE_S
        while part not in self.text:
            assert time.monotonic() < end, self.text
            time.sleep(0.02)


@contextmanager
def watching(*options: str, terminal: bool = False, workspace: Path = ROOT) -> Iterator[Watching]:
    """Killed at the end, where it goes on."""
    here, there = pty.openpty() if terminal else os.pipe()
    vizpub = [sys.executable, "-m", "vizpub.cli", "--workspace", str(workspace)]
    process = subprocess.Popen(
        [*vizpub, "live", "watch", "lab", *options],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=there,
        stderr=there,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm"},
    )
    os.close(there)
    found = Watching(process)

    def read() -> None:
        with suppress(OSError):  # how a terminal ends
            while part := os.read(here, 1 << 16):
                found.written.extend(part)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield found
    finally:
        process.kill()
        process.wait()
        reading.join(PATIENCE_S)
        os.close(here)
