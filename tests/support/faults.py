"""Ingests that stop where a killed one would, and a lost Java process, without a kill."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import JavaObject

from vizpub.ingest.spark import scale
from vizpub.runstore import writer
from vizpub.runstore.manifest import FILE, Manifest, write_manifest

LARGE = -1
"""Every input has more bytes: its run is committed stage by stage."""


class Stopped(BaseException):
    """The pipeline does not handle this error: only what was committed before it remains."""


@contextmanager
def stopping(
    stage: str, *, committed: bool, look: Callable[[Path], object] = lambda _: None
) -> Iterator[None]:
    """Stop an ingest in the block at the commit of the stage: when its tables are written, just
    before the manifest names them, or just after (`committed`).

    `look` gets the run's directory just before. The input counts as large.
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


def java_gone() -> JavaObject:
    """An object of a Java process that has ended."""
    with socket.create_server(("127.0.0.1", 0)) as ended:
        parameters = JavaParameters(port=ended.getsockname()[1])
    gateway = ClientServer(parameters, PythonParameters(eager_load=False))
    return JavaObject("o42", gateway._gateway_client)
