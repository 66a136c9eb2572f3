"""Who writes a run in a store: a claim, an object that its writer renews.

A claim saves work: a second writer learns at once that there is a first. It protects no data. A
writer whose claim was taken, as it slept for a minute, may go on; its commit then fails, as a
commit names the run.json that its writer has read (vizpub.runstore.stores.remote).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from uuid import uuid4

import msgspec

from vizpub.model.errors import RunLocked, ServiceError
from vizpub.runstore.stores.objects import Changed, Found, Objects

FILE = "claim.json"
COLLECTOR = "collector.json"
"""The claim of a collector, which it holds between its appends, too."""
LEASE_S = 60.0
"""A claim that was not renewed for so long is no more."""
RENEWED_S = 15.0


class Content(msgspec.Struct, frozen=True):
    """The content of a claim."""

    owner: str
    """The writer, in words for others."""
    place: str
    """Where it works. There only one process can, so its next one takes the claim at once."""
    epoch: int
    """Greater than those of all claims before."""
    renewed_s: float
    """When it was renewed, in seconds since 1970 by the writer's clock."""
    identity: str
    """Of this renewal alone."""
    released: bool = False

    def is_held(self, place: str) -> bool:
        """Return True if a writer elsewhere holds it. A time far ahead tells nothing."""
        is_young = abs(time.time() - self.renewed_s) < LEASE_S
        return is_young and not self.released and self.place != place


_DECODER = msgspec.json.Decoder(Content)


@dataclass
class Claim:
    """A claim on a run, held by this process."""

    store: Objects
    run: str
    content: Content
    version: str
    file: str = FILE
    _lock: Lock = field(default_factory=Lock)

    @property
    def name(self) -> str:
        """The name of its object."""
        return name_of_claim(self.run, self.file)

    def renew(self, *, released: bool = False) -> None:
        """Renew the claim. Raises: RunLocked if it was taken, ServiceError."""
        with self._lock:
            content = msgspec.structs.replace(
                self.content, renewed_s=time.time(), identity=uuid4().hex, released=released
            )
            try:
                self.version = self.store.put_if(self.name, _encode(content), self.version)
            except Changed as error:
                raise RunLocked(self.run, owner_of(error.there)) from error


@contextmanager
def claimed(store: Objects, run: str, directory: Path, file: str = FILE) -> Iterator[Claim]:
    """Hold the claim on a run for the length of the block; `directory` is the run's on this
    machine, which only this process writes. Raises: RunLocked, ServiceError.
    """
    host, found = os.uname().nodename, store.find(name_of_claim(run, file))
    place, before = _place_of(directory), _decode(found)
    if before and before.is_held(place):
        raise RunLocked(run, before.owner)
    now = time.time()
    epoch = max(int(now * 1000), before.epoch + 1 if before else 0)
    content = Content(f"process {os.getpid()} on {host}", place, epoch, now, uuid4().hex)
    version = found.version if found else None
    try:
        version = store.put_if(name_of_claim(run, file), _encode(content), version)
    except Changed as error:
        raise RunLocked(run, owner_of(error.there)) from error
    claim, ended = Claim(store, run, content, version, file), Event()

    def keep() -> None:
        with suppress(RunLocked):  # who commits, renews it before
            while not ended.wait(RENEWED_S):
                with suppress(ServiceError):
                    claim.renew()

    renewal = Thread(target=keep, daemon=True)
    renewal.start()
    try:
        yield claim
    finally:
        ended.set()
        renewal.join()
        with suppress(RunLocked, ServiceError):
            claim.renew(released=True)


def name_of_claim(run: str, file: str = FILE) -> str:
    """The name of the object with the claim on a run."""
    return f"runs/{run}/{file}"


def collector_elsewhere(store: Objects, run: str, directory: Path) -> str:
    """The collector of a run on another machine, in words; empty where none collects."""
    found = store.find(name_of_claim(run, COLLECTOR))
    content = _decode(found)
    return content.owner if content and content.is_held(_place_of(directory)) else ""


def _place_of(directory: Path) -> str:
    return f"{os.uname().nodename}:{directory}"


def owner_of(found: Found | None) -> str:
    """The writer that holds a claim, in words."""
    content = _decode(found)
    return content.owner if content else "another process"


def _encode(content: Content) -> bytes:
    return msgspec.json.encode(content)


def _decode(found: Found | None) -> Content | None:
    with suppress(msgspec.DecodeError):
        return _DECODER.decode(found.content) if found else None
    return None
