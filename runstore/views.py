"""What other programs find in a run's directory: a folder for each table, with exactly its rows.

    links -> view/links         a table's folder; `metrics` holds several
    view -> views/3f2a9c        the state of the run, which one rename changes
    views/3f2a9c/links/3f2a9c-0.parquet ...

The files of a view are further names (hard links) of those that run.json lists. Readers list a
folder and then look at each file, and pyarrow, Spark and DuckDB pass over one that is gone by then.
So each view gives all files new names: those of a view that is no longer shown cannot be opened
through the link, and such a reader fails instead of missing rows. Under its own name a view stays
as long as other files that were let go.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from filecmp import cmp
from pathlib import Path
from uuid import uuid4

from vizpub.model.errors import StoreBroken, UnknownName, UseError
from vizpub.runstore import durable
from vizpub.runstore.integrity import Damage
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.store import StoredRun

VIEWS = "views"
VIEW = "view"
_GONE = ".gone"
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of file systems that have no hard links, or not so many."""


def files(run: Path, manifest: Manifest) -> dict[str, list[Path]]:
    """The files of each table that is not staged."""
    return {
        name: [run / part.directory / f.name for part in entry.parts for f in part.files or ()]
        for name, entry in manifest.tables.items()
        if not name.startswith("staged/")
    }


def make(run: Path, manifest: Manifest) -> str:
    """A new view of the run, which is not shown yet; empty where the run has no tables, or the file
    system no hard links.

    Raises: StoreBroken where a file is missing, OSError.
    """
    name = uuid4().hex[:12]
    top = run / VIEWS / name
    try:
        for table, paths in files(run, manifest).items():
            folder = top / table
            folder.mkdir(parents=True)
            for path, further_name in zip(paths, _names(name, len(paths)), strict=True):
                durable.link(path, folder / further_name)
    except FileNotFoundError as error:
        raise StoreBroken(str(error.filename), "the file is missing") from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        durable.remove_tree(top)
    return f"{VIEWS}/{name}" if top.is_dir() else ""


def folders(run: Path, view: str) -> Iterator[Path]:
    """All directories of a view."""
    return (Path(folder) for folder, _, _ in os.walk(run / view)) if view else iter(())


def show(run: Path, manifest: Manifest) -> None:
    """Let the tables' folders lead to the view of the run, where they do not yet."""
    targets = _link_targets(manifest)
    changed = [name for name, target in targets.items() if not _leads(run / name, target)]
    for name in changed:
        path, fresh = run / name, run / f"{name}.new"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(targets[name])
        if path.is_dir() and not path.is_symlink():  # of an earlier format
            durable.remove_tree(path)
        durable.rename(fresh, path)
    others = [path for path in run.iterdir() if path.name not in targets and is_own_link(path)]
    for path in others:
        durable.unlink(path)
    if changed or others:
        durable.sync_directory(run)


def _link_targets(manifest: Manifest) -> dict[str, str]:
    """The links in the directory of a run, each with its target; none where it has no view."""
    names = (name for name in manifest.tables if not name.startswith("staged/"))
    tops = sorted({name.split("/")[0] for name in names}) if manifest.view else []
    return {VIEW: manifest.view, **{top: f"{VIEW}/{top}" for top in tops}} if tops else {}


def damages(run: Path, manifest: Manifest) -> Iterator[Damage]:
    """The differences of links and views from run.json, in the order of the paths."""
    if not manifest.complete:
        return
    targets = _link_targets(manifest)
    for name, target in targets.items():
        if not _leads(run / name, target):
            yield Damage(name, "", f"{_target(run / name)}, not to {target}")
    for path in sorted(run.iterdir()):
        if path.name not in targets and is_own_link(path):
            yield Damage(path.name, "", "leads to a table that the run does not have")
    if manifest.view:
        yield from _damages_of_view(run, manifest.view, files(run, manifest))


def _damages_of_view(run: Path, view: str, tables: Mapping[str, list[Path]]) -> Iterator[Damage]:
    """The damages of a view, which names each file of the tables, and has nothing else."""
    wanted = {
        f"{view}/{table}/{name}": (table, path)
        for table, paths in tables.items()
        for name, path in zip(_names(view, len(paths)), paths, strict=True)
    }
    inside = {
        os.path.relpath(os.path.join(place, name), run)
        for place, folders, names in os.walk(run / view)
        for name in (*names, *folders)
    }
    inside -= {str(above) for table in tables for above in Path(view, table).parents}
    for name in sorted(wanted.keys() | inside - {f"{view}/{table}" for table in tables}):
        table, of = wanted.get(name, ("", None))
        if of is None:
            yield Damage(name, table, "belongs to no file of the run")
        elif name not in inside:
            yield Damage(name, table, f"is missing, and stands for {of.relative_to(run)}")
        elif not _is_alike(run / name, of):
            yield Damage(name, table, f"is another file than {of.relative_to(run)}")


def _is_alike(path: Path, of: Path) -> bool:
    """Return True if a name stands for a file, or for a copy of it, as a copy of the run has."""
    try:
        return path.samefile(of) or cmp(path, of, shallow=False)
    except OSError:
        return False


def _names(view: str, count: int) -> list[str]:
    """The names of the files in a folder of a view."""
    name = view.removeprefix(f"{VIEWS}/")
    return [f"{name}-{number}.parquet" for number in range(count)]


def _target(path: Path) -> str:
    if path.is_symlink():
        return f"leads to {os.readlink(path)}"
    return "is no link" if path.exists() else "is missing"


def folder(run: StoredRun, table: str) -> Path:
    """The folder of a table in the view of the run, which stays for a while after another is shown.

    Raises: UnknownName; UseError where the run has no view.
    """
    tables = [*files(run.directory, run.manifest)]
    if table not in tables:
        raise UnknownName("table", table, tables)
    path = run.directory / run.manifest.view / table
    if not run.manifest.view or not path.is_dir():
        raise UseError(
            f"run '{run.name}' has no folders for other programs: its file system has no hard "
            f"links, or they were removed; vizpub runs files {run.name} lists its files, and "
            f"vizpub runs check {run.name} --mend recreates them"
        )
    return path


def is_own_link(path: Path) -> bool:
    """Return True if it is a link that `show` made in the directory of a run."""
    if not path.is_symlink():
        return False
    target, name = os.readlink(path), path.name.removesuffix(".new")
    return target == f"{VIEW}/{name}" or (name == VIEW and target.startswith(f"{VIEWS}/"))


def withdraw(view: Path) -> None:
    """Remove a view, or all of them; who reads it then finds no file, not a part of them."""
    if view.is_dir():
        if not view.name.endswith(_GONE):
            gone = view.with_name(f"{view.name}{_GONE}")
            durable.rename(view, gone)
            view = gone
        durable.remove_tree(view)


def _leads(path: Path, target: str) -> bool:
    return path.is_symlink() and os.readlink(path) == target
