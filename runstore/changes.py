"""Changes of a run that were begun and not committed: until then the run is as it was.

Only here it is said what became of such a change, for every command that shows a run.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from vizpub.machine.locks import find_holder, lock_of
from vizpub.model.errors import StoreBroken
from vizpub.model.wording import amount
from vizpub.runstore.manifest import FILE, Manifest, read_manifest
from vizpub.runstore.store import StoredRun

PENDING = "pending.json"
"""The manifest of a run that will replace an existing one when it is complete."""


def pending(directory: Path, stored: Manifest | None) -> Manifest | None:
    """The manifest of a change of the run that run.json describes now (null = it cannot be read);
    null if there is none.
    """
    with suppress(FileNotFoundError, StoreBroken):
        manifest = read_manifest(directory, PENDING)
        return manifest if manifest.replaces == identity_to_replace(directory, stored) else None
    return None


def identity_to_replace(directory: Path, stored: Manifest | None) -> str:
    """Return the identity that a change replaces: that of the run's tables, so that run.json may
    change otherwise meanwhile; or a digest of run.json, if that cannot be read; or empty.
    """
    if stored:
        return stored.identity
    with suppress(OSError):
        text = (directory / FILE).read_bytes()
        return hashlib.blake2b(text, digest_size=12).hexdigest()
    return ""


def describe_unfinished(run: StoredRun) -> str:
    """Describe a change of the run that is not committed; empty if there is none."""
    change = pending(run.directory, run.manifest) if run.manifest.complete else None
    if change is None:
        return ""
    action = "an append" if change.extends else "a rebuild"
    files = amount(change.input_size[0], "file")
    with suppress(OSError):  # or this user may not know
        if writer := find_holder(lock_of(run.directory)):
            return f"{action} is running in {writer}; the run stays as it was until it is complete"
    interruption = f"{action} was interrupted ({files} in all)"
    return f"{interruption}; the run is as it was, and the same command resumes it"


def state(run: StoredRun) -> str:
    """The state of a run, as text for users."""
    if not run.manifest.complete:
        return f"{run.manifest.state}, not complete"
    change = describe_unfinished(run)
    return f"{run.manifest.state}; {change}" if change else run.manifest.state
