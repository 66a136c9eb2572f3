"""The lock of the JVM artifacts: `jvm.lock` beside this module, in JSON.

It names sets of jars: the requested roots, and the coordinates, size and sha256 of each file that
they depend on. `vizpub.machine.jvm.maven` writes it, `vizpub.machine.jvm.artifacts` obeys it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

LOCK = Path(__file__).with_name("jvm.lock")


@dataclass(frozen=True)
class Artifact:
    """One jar: `group:artifact:version[:classifier]`, its bytes and their sha256.

    If one was not available when the lock was made, size is 0 and sha256 empty.
    """

    at: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        """The name of the file: `artifact-version[-classifier].jar`."""
        return "-".join(self.at.split(":")[1:]) + ".jar"


@dataclass(frozen=True)
class JarSet:
    """A named set of the lock."""

    name: str
    version: str
    roots: tuple[str, ...]
    """The requested coordinates."""
    without: tuple[str, ...]
    """`group:artifact` of dependencies to leave out."""
    transitive: bool
    """True if the roots' dependencies belong to the set."""
    artifacts: tuple[Artifact, ...]
    """The resolved artifacts; empty if the roots were not available."""

    @property
    def files(self) -> tuple[Artifact, ...]:
        """The artifacts, or the roots alone if nothing was resolved."""
        return self.artifacts or tuple(Artifact(root, 0, "") for root in self.roots)

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def read_lock(path: Path = LOCK) -> dict[str, JarSet]:
    """Read the sets of a lock file, by name."""
    return {
        name: JarSet(
            name,
            entry["version"],
            tuple(entry["roots"]),
            tuple(entry["without"]),
            entry["transitive"],
            tuple(Artifact(**jar) for jar in entry["artifacts"]),
        )
        for name, entry in json.loads(path.read_text("utf-8")).items()
    }


def write_lock(sets: Iterable[JarSet], path: Path) -> None:
    """Write the sets as a lock file that `read_lock` reads back unchanged."""
    entries = {jars.name: asdict(jars) for jars in sets}
    for entry in entries.values():
        del entry["name"]
    path.write_text(json.dumps(entries, indent=1) + "\n", "utf-8")
