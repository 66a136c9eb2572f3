"""Reserves the name of a collected run before the first report, and releases it if none came."""

from __future__ import annotations

from vizpub.collector.place import CollectionPlace
from vizpub.machine.files import as_errors_of_ours
from vizpub.model.errors import OtherFormat, ServiceError, StoreBroken, UseError
from vizpub.runstore.collection import RETIRED
from vizpub.runstore.store import current_manifest, directory_of
from vizpub.runstore.writer import writing

NOT_OURS = "is there already, and this collection did not begin it"


def check_format(place: CollectionPlace) -> None:
    """Check that this version can append to the run, if there is one. A run that is damaged stops
    no collection, but of another version's it is clear that nothing would ever be appended to it.

    Raises: OtherFormat.
    """
    try:
        current_manifest(directory_of(place.workspace, place.run))
    except OtherFormat as error:
        if not place.identity:
            raise
        again = f"vizpub runs remove {place.run}, then vizpub live collect {place.run} --revive"
        hint = f"to rebuild the run from what was collected: {again}"
        raise OtherFormat(error.path, error.why, hint) from error
    except (FileNotFoundError, StoreBroken, ServiceError):
        pass


def reserve(place: CollectionPlace, *, revive: bool = False) -> None:
    """Reserve the run's name for the collection, unless it has it already. Its folder is held.

    Raises: UseError if there is a run of that name that the collection did not begin, or if its
    run was removed and is not to be rebuilt (`revive`); RunLocked, DiskFull; ServiceError for a
    name that is not taken yet.
    """
    try:
        if place.owns(current_manifest(directory_of(place.workspace, place.run))):
            return  # without the run's lock: an append of a killed collector may still hold it
    except (FileNotFoundError, StoreBroken):  # a broken run stops no intake
        pass
    except ServiceError:
        if place.identity:  # nor does a store that is away: an append will tell what it has
            return
        raise
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
        # A kill in between leaves an empty collection, or one to revive, as before.
        with as_errors_of_ours(place.folder):
            identity = place.identify()
        writer.reserve(identity)


def _how_to_revive(place: CollectionPlace) -> str:
    return f"to rebuild the run from the collection: vizpub live collect {place.run} --revive"


def release(place: CollectionPlace) -> None:
    """Release the name if no run was made."""
    with writing(place.workspace, place.run, collects=True) as writer:
        if place.owns(writer.stored):
            writer.release()
