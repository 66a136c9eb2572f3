"""A run that is collected while the page shows it: how far it is, and commands for its peers."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

from vizpub.collector.http.client import CollectorClient, collector_of
from vizpub.collector.place import CollectionPlace
from vizpub.model.errors import UseError
from vizpub.runstore.store import StoredRun, open_run

ACTIONS = ("leave", "join")
_EXPIRES_S = 60.0
"""A command waits so long for its peer, as with `vizpub live tell`."""


def is_live(run: StoredRun) -> bool:
    """Return True if the run is collected, and has not ended."""
    return bool(run.manifest.collection) and not run.manifest.ended


def describe_state(run: StoredRun) -> dict[str, Any]:
    """`identity` of its tables, `live`, and `behind_s`: seconds since the end of its last interval;
    null where the clock of the run is unknown.
    """
    clock, epoch = run.facts.clock, run.facts.epoch
    behind = None
    if epoch is not None and clock.interval_us is not None:
        end_s = (
            datetime.fromisoformat(epoch).timestamp() + (clock.last + 1) * clock.interval_us / 1e6
        )
        behind = round(time.time() - end_s, 1)
    return {"identity": run.facts.tables, "live": is_live(run), "behind_s": behind}


def tell_peer(workspace: Path, name: str, peer: int, action: str) -> dict[str, Any]:
    """Ask a peer to leave or to join: the command's `id`, `state` and `reason`.

    Raises: UseError where no collector runs, or it refuses; ServiceError.
    """
    if action not in ACTIONS:
        raise UseError(f"'{action}' is not one of {', '.join(ACTIONS)}")
    names = open_run(workspace, name).read("peers", ["name"])["name"]
    if not 0 <= peer < len(names):
        raise UseError(f"there is no peer {peer}")
    return _collector(workspace, name).tell(names[peer].as_py(), action, _EXPIRES_S)


def find_command(workspace: Path, name: str, number: int) -> dict[str, Any]:
    """Return the state of a command. Raises: as `tell_peer`."""
    return _collector(workspace, name).find_command(number)


def _collector(workspace: Path, name: str) -> CollectorClient:
    return collector_of(CollectionPlace(workspace, name))
