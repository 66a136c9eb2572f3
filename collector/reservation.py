"""The name of a collected run: taken before the first report, and given back where none came."""

from __future__ import annotations

from contextlib import suppress

from vizpub.collector.place import CollectionPlace
from vizpub.machine.files import as_errors_of_ours
from vizpub.model.errors import StoreBroken, UseError
from vizpub.runstore.collection import RETIRED
from vizpub.runstore.manifest import read_manifest
from vizpub.runstore.store import directory_of
from vizpub.runstore.writer import writing

NOT_OURS = "is there already, and this collection did not begin it"


def reserve(place: CollectionPlace, *, revive: bool = False) -> None:
    """Take the name of the run for the collection, unless it has it already. Its folder is held.

    Raises: UseError if there is a run of that name that the collection did not begin, or if its
    run is gone and is not to be rebuilt (`revive`); RunLocked, DiskFull.
    """
    with suppress(FileNotFoundError, StoreBroken):  # a broken run stops no intake
        if place.owns(read_manifest(directory_of(place.workspace, place.run))):
            return  # an append of a collector that was killed may still write it
    with writing(place.workspace, place.run, collects=True) as writer:
        if writer.broken and place.identity:
            return
        if writer.stored or writer.broken:
            why = f"run '{place.run}' {NOT_OURS}: collect another run"
            if not place.is_empty:
                why += f", or remove that one first; {_how_to_revive(place)}"
            raise UseError(why)
        if not (place.is_empty or revive):
            raise UseError(
                f"the collection of run '{place.run}' in {place.folder} {RETIRED}; "
                f"{_how_to_revive(place)}; to begin another, first delete it: "
                f"vizpub runs remove {place.run} --with-log"
            )
        # A kill in between leaves an empty collection, or one that is to be revived, as before.
        with as_errors_of_ours(place.folder):
            identity = place.identify()
        writer.reserve(identity)


def _how_to_revive(place: CollectionPlace) -> str:
    return f"to rebuild the run from the collection and resume: vizpub collect {place.run} --revive"


def release(place: CollectionPlace) -> None:
    """Give the name back if no run came to be."""
    with writing(place.workspace, place.run, collects=True) as writer:
        if place.owns(writer.stored):
            writer.release()
