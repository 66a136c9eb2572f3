"""Build the container images: `python docker/images.py [neo4j] [vizpub]`.

An image carries the digest of its content, and is not built again while that is unchanged. Docker
gets a build context with everything in it: Neo4j's jars and the Python packages come from this
machine, checked against the locks, and a build fetches only Debian packages.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from vizpub.graphstore.server.settings import (
    ADMIN_JVM,
    JARS,
    PROFILES,
    SERVER_CLASS,
    conf_lines,
    settings,
)
from vizpub.ingest.spark.shipping import pack_package
from vizpub.machine.jvm.artifacts import cache_path, jar_set, jars

HERE = Path(__file__).parent
ROOT = HERE.parent
LABEL = "vizpub.made-of"
EXTRAS = ("graphframes", "hdfs", "kafka", "s3")
"""The extras of vizpub that its image has."""
Files = Mapping[str, Path]
"""Paths in the build context, and the files to put there."""


@dataclass(frozen=True)
class Image:
    """An image to build."""

    tag: str
    folder: Path
    """The folder of its Dockerfile and of the files that it copies unchanged."""
    texts: Mapping[str, str]
    """Path in the build context, and text: small files that are made here."""
    made_of: str
    """Identifies the content of `collected` before anything is collected."""
    collected: Callable[[], Files]
    """Large files."""

    @property
    def base(self) -> str:
        """The base image: Debian's Python where the version is ours, else Python's own image."""
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        slim = "debian:bookworm-slim" if python == "3.11" else f"python:{python}-slim-bookworm"
        return os.environ.get("VIZPUB_BASE_IMAGE") or slim

    def digest(self) -> str:
        """Return a hash that changes with any part of the image."""
        files = {path.name: path.read_text("utf-8") for path in self.folder.iterdir()}
        parts = [self.base, self.made_of, files, dict(self.texts)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def neo4j() -> Image:
    """Neo4j, with the settings of the local server."""
    profile, jar_files = PROFILES["default"], jar_set(JARS)
    places = {
        "server.default_listen_address": "0.0.0.0",
        "server.directories.data": "/data",
        "server.directories.logs": "/logs",
    }
    texts = {
        "conf/neo4j.conf": conf_lines(places | settings(profile)),
        "conf/jvm": "\n".join(profile.jvm),
        "conf/admin": "\n".join(ADMIN_JVM),
        "conf/class": SERVER_CLASS,
    }
    return Image(
        "vizpub/neo4j:" + jar_files.version.rpartition(".")[0],
        HERE / "neo4j",
        texts,
        " ".join(artifact.sha256 for artifact in jar_files.files),
        lambda: {f"lib/{path.name}": path for path in jars(JARS)},
    )


def vizpub() -> Image:
    """The command line and Spark, with the packages of requirements.lock that vizpub needs."""
    lock = _lock_for("vizpub")
    with TemporaryDirectory() as folder:
        ours = pack_package(Path(folder)).stem
    return Image("vizpub/vizpub", HERE / "application", {}, f"{ours} {lock}", lambda: _wheels(lock))


def _lock_for(project: str) -> str:
    """The entries of requirements.lock that the project needs at run time."""
    wanted = set(_dependencies(project, set()))
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text("utf-8"))
    return "\n".join(e for e in entries if canonicalize_name(re.split("[=[]", e)[0]) in wanted)


def _dependencies(project: str, seen: set[str]) -> Iterator[str]:
    """All direct and indirect dependencies of the project on this platform."""
    extras = EXTRAS if project == "vizpub" else ("",)
    for requirement in map(Requirement, requires(project) or ()):
        name, marker = canonicalize_name(requirement.name), requirement.marker
        applies = marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)
        if applies and name not in seen:
            seen.add(name)
            yield name
            yield from _dependencies(name, seen)


def _wheels(lock: str) -> Files:
    """The locked packages as wheels, kept in the cache, and our own wheel, built again."""
    name = hashlib.sha256(f"{sys.version_info[:2]} {lock}".encode()).hexdigest()[:16]
    folder = cache_path() / "wheels" / name
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "lock.txt").write_text(lock, "utf-8")
        _pip_wheel(folder, "--require-hashes", "-r", str(folder / "lock.txt"))
        (folder / "complete").touch()
    own_folder = cache_path() / "wheels" / "vizpub"
    _pip_wheel(own_folder, "--no-build-isolation", str(ROOT))
    ours = max(own_folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    locked = {f"locked/{path.name}": path for path in folder.glob("*.whl")}
    return locked | {f"own/{ours.name}": ours}


def _pip_wheel(folder: Path, *words: str) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "-q", "--no-deps"]
    subprocess.run([*pip, "-w", str(folder), *words], check=True)


def build_image(image: Image) -> None:
    """Build the image unless one with the same content exists."""
    digest = image.digest()
    if _image_digest(image.tag) == digest:
        print(f"{image.tag} is up to date")
        return
    subprocess.run([HERE / "base.sh", image.base], check=True)
    collected = image.collected()
    command = ["docker", "build", "-q", "-t", image.tag, "--label", f"{LABEL}={digest}"]
    with subprocess.Popen(
        [*command, "--build-arg", f"BASE={image.base}", "-"], stdin=subprocess.PIPE
    ) as building:
        assert building.stdin
        with tarfile.open(mode="w|", format=tarfile.GNU_FORMAT, fileobj=building.stdin) as context:
            _fill_context(context, image, collected)
        building.stdin.close()
    if building.returncode:
        sys.exit(f"{image.tag} could not be built")
    # The image that had the tag before has its label, and no name any more.
    prune = ["docker", "image", "prune", "-f", "--filter", f"label={LABEL}"]
    subprocess.run(prune, stdout=subprocess.DEVNULL, check=False)


def _fill_context(context: tarfile.TarFile, image: Image, collected: Files) -> None:
    for path in image.folder.iterdir():
        context.add(path, path.name, filter=_plain)
    for name, text in image.texts.items():
        entry = tarfile.TarInfo(name)
        entry.size = len(text.encode())
        context.addfile(entry, io.BytesIO(text.encode()))
    for name, path in collected.items():
        context.add(path, name, filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Let others read it, whatever the umask was, and execute it if its owner may."""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


def _image_digest(tag: str) -> str:
    """The digest that the existing image carries; empty without an image."""
    wanted = f'{{{{index .Config.Labels "{LABEL}"}}}}'
    shown = subprocess.run(
        ["docker", "image", "inspect", "-f", wanted, tag],
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout.strip()


def find_engine() -> None:
    """Exit with a message if no Docker engine answers."""
    try:
        version = subprocess.run(["docker", "version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("the docker command is not installed: install Docker to build the images")
    if version.returncode:
        sys.exit(f"{version.stderr.strip()}\nstart a Docker engine to build the images")


IMAGES = {"neo4j": neo4j, "vizpub": vizpub}

if __name__ == "__main__":
    find_engine()
    for name in sys.argv[1:] or IMAGES:
        build_image(IMAGES[name]())
