"""Ingests that stop where a killed one would, in the process of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingest import scale, writer
from ingest.manifest import FILE, Manifest, write_manifest

LARGE = -1
"""Bytes of which every input has more: its run is committed stage by stage."""


class Stopped(BaseException):
    """Nothing of the pipeline handles it: what is committed then is all there is."""


@contextmanager
def stopping(
    stage: str, *, committed: bool, look: Callable[[Path], object] = lambda _: None
) -> Iterator[None]:
    """Whoever ingests in the block is stopped with the commit of the stage: once its tables are
    written, just before they are named in the manifest, or just after (`committed`).

    `look` is shown the run's directory just before. The input counts as large.
    """

    def write(directory: Path, manifest: Manifest, file: str = FILE) -> None:
        here = manifest.stages[-1:] == (stage,)
        if here:
            look(directory)
        if here and not committed:
            raise Stopped
        write_manifest(directory, manifest, file)
        if here:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scale, "SMALL_INPUT", LARGE)
        patch.setattr(writer, "write_manifest", write)  # what a commit calls
        with pytest.raises(Stopped):
            yield
