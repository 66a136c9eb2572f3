"""The files that paths name: files, folders with all below them, globs, URIs.

A file with several names is read once, and links to folders are not followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from errno import ELOOP
from functools import cache
from glob import glob, has_magic
from typing import Any
from urllib.parse import quote, urlsplit

import pyarrow as pa
from pyarrow import fs

from vizpub.model.errors import InputError

NO_FILES_IN = "is a folder without files"
NO_SUCH_PATH = "no such path"
FROM_THE_WEB = "input is not fetched from the web"
EMPTY_PATH = "an empty path names no input"
CHANGED = "changed while it was read"
UNREADABLE = "cannot be read"

EXAMPLE = "for example: vizpub ingest traces/ --run NAME"
_SHOWN = 5
_READABLE = "give files that this user can read"
_NOT_UTF8 = "its name is not UTF-8: rename it"
_PIPE = "a pipe"
_OURS = "the workspace's own: name it to read it"
_NO_FILES = {
    stat.S_IFIFO: _PIPE,
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_DEEP = f"{os.sep}**{os.sep}"
_OF_PROCESS = ("/dev/", "/proc/")
_AS_FILE = (
    "input is read more than once: write it into a file first, or give it as standard input, which "
    "is kept meanwhile, for example: zcat trace.json.gz | vizpub ingest - --run NAME"
)
_WEB = ("http", "https")


@dataclass(frozen=True)
class Stamp:
    """The state of a file; it changes when the file is written again."""

    size: int
    mtime_ns: int | None
    identity: tuple[int, int] | None = None
    """Device and inode; null where the file system has none."""


@dataclass(frozen=True)
class Found:
    """The result of resolving a path."""

    files: dict[str, Stamp] = field(default_factory=dict)
    """By absolute path or URI."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Paths that cannot be read as a file, and why."""
    named: bool = False
    """The path names the file itself, not a folder or a pattern."""


@dataclass(frozen=True)
class InputFile:
    """A file to ingest, as the inventory found it."""

    path: str
    encoding: str
    """What the source recognised it as: 'json', 'protobuf', 'csv', …"""
    size: int
    sha256: str
    stamp: Stamp | None = field(default=None, compare=False, repr=False)
    """Its state before it was inspected."""

    @property
    def manifest_entry(self) -> dict[str, Any]:
        """Its entry in run.json before it is read."""
        named = {name: value for name, value in asdict(self).items() if name != "stamp"}
        return {**named, "damage": None}


def find(paths: Iterable[str], without: Iterable[str] = ()) -> dict[str, Found]:
    """Resolve the paths. A file that several paths lead to belongs to the first of them. What lies
    in the folders `without` is left out, unless the path leads into one of them.

    Raises: InputError where a path does not exist or has an unknown file system, and where it
    cannot be read as a file: a pipe, a device, a broken link.
    """
    seen: dict[tuple[int, int], str] = {}
    ours = [os.path.realpath(folder) for folder in without]
    return {path: _once(_left_out(_expand(path), path, ours), seen) for path in paths}


def check_unchanged(stamps: Mapping[str, Stamp]) -> None:
    """Check that files, by path or URI, are the same as before they were read.

    Raises: InputError for a file that has changed.
    """
    with ThreadPoolExecutor() as pool:  # a remote one is slow to answer
        found = dict(zip(stamps, pool.map(_stamp_now, stamps), strict=True))
    for path, before in stamps.items():
        if (now := found[path]) != before:
            raise InputError(
                f"{shown(path)} {CHANGED}: {_difference(before, now)}",
                "give a file that is no longer written to, for example a copy",
            )


def located(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URI, and the path in it. Raises: InputError."""
    if urlsplit(path).scheme in _WEB and "://" in path:
        raise InputError(
            f"{path}: {FROM_THE_WEB}, because it is read more than once",
            f"pipe it in: curl -fsSL '{path}' | vizpub ingest - --run NAME",
        )
    try:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(
            path if "://" in path else os.path.abspath(path)
        )
        return found
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{NO_SUCH_PATH}: {path}", str(error)) from error


def _expand(path: str) -> Found:
    if not path:  # which would be the working directory
        raise InputError(EMPTY_PATH, f"give files, folders or globs, {EXAMPLE}")
    if "://" not in path:
        return _expand_local(path, os.path.abspath(path))
    filesystem, inside = located(path)
    if isinstance(filesystem, fs.LocalFileSystem):
        return _expand_local(path, inside)
    info = filesystem.get_file_info(inside)
    if info.type == fs.FileType.NotFound:
        raise _nothing(path)
    is_file = info.type == fs.FileType.File
    below = fs.FileSelector(inside, recursive=True)
    entries = [info] if is_file else filesystem.get_file_info(below)
    files = {_uri(path, e.path): _stamp_of(e) for e in entries if e.type == fs.FileType.File}
    return _some(path, Found(files, named=is_file))


def _expand_local(given: str, path: str) -> Found:
    try:
        status = os.stat(path)
    except OSError as error:
        return _matches(given, path, error)
    if stat.S_ISDIR(status.st_mode):
        return _some(given, _gathered([path]))
    why = _unfit(path, status)
    if path.startswith(_OF_PROCESS):  # other processes find something else there
        path = os.path.realpath(path)
        why = why or (None if os.path.exists(path) else _PIPE)
    if why:
        raise InputError(f"{shown(given)}: {why}", _AS_FILE if why != _NOT_UTF8 else "")
    return Found({path: _stamp(status)}, named=True)


def _matches(given: str, path: str, error: OSError) -> Found:
    """The files that a path matches as a pattern. Raises: InputError where there are none."""
    if os.path.lexists(path) or not isinstance(error, FileNotFoundError):
        raise InputError(f"{shown(given)}: {_why(path, error)}")
    matches = set(_glob(path)) if has_magic(path) else set()
    if not matches:
        raise _nothing(given)
    return _expand_local(given, *matches) if len(matches) == 1 else _gathered(matches)


def _glob(pattern: str) -> Iterator[str]:
    """The paths that a pattern matches; unlike glob's, `**` follows no links."""
    above, deep, below = (pattern + os.sep).partition(_DEEP)
    if not deep:
        yield from glob(pattern)
        return
    for top in glob(above):
        for place, folders, _ in os.walk(top):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from _glob(os.path.join(place, below).rstrip(os.sep))


def _nothing(path: str) -> InputError:
    return InputError(f"{NO_SUCH_PATH}: {shown(path)}", f"give files, folders or globs, {EXAMPLE}")


def _some(path: str, found: Found) -> Found:
    """The same object. Raises: InputError where it has no files."""
    if not found.files:
        check_readable(found.skipped)
        reasons = [f"{name}: {why}" for name, why in found.skipped.items()]
        raise InputError(
            f"{shown(path)} {NO_FILES_IN}",
            "; ".join(reasons[:_SHOWN]) or f"give one with traces, {EXAMPLE}",
        )
    return found


def check_readable(left_out: Mapping[str, str | None]) -> None:
    """Check why files, by path, are left out. Raises: InputError where some cannot be read."""
    lost = [f"{path}: {why}" for path, why in left_out.items() if why and UNREADABLE in why]
    if lost:
        more = f"; and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        raise InputError("; ".join(lost[:_SHOWN]) + more, _READABLE)


def _gathered(paths: Iterable[str]) -> Found:
    """The given files, and all files below the given folders."""
    found = Found()
    for path in paths:
        for inside in _below(path, found.skipped) if os.path.isdir(path) else [path]:
            try:
                status = os.stat(inside)
            except OSError as error:
                found.skipped[shown(inside)] = _why(inside, error)
                continue
            if why := _unfit(inside, status):
                found.skipped[shown(inside)] = why
            else:
                found.files[inside] = _stamp(status)
    return found


def _below(folder: str, skipped: dict[str, str]) -> Iterator[str]:
    """The files below a folder; links to folders are not followed."""

    def skip(error: OSError) -> None:
        skipped[shown(error.filename)] = _why(error.filename, error)

    for place, folders, names in os.walk(folder, onerror=skip):
        for path in (os.path.join(place, name) for name in tuple(folders)):
            if os.path.islink(path):
                skipped[shown(path)] = "a link to a folder: name the folder to read it"
            elif not _is_utf8(path):
                skipped[shown(path)] = _NOT_UTF8
                folders.remove(os.path.basename(path))
        yield from (os.path.join(place, name) for name in names)


def _left_out(found: Found, given: str, ours: Sequence[str]) -> Found:
    """What was found outside of our own folders."""

    @cache
    def of(folder: str) -> str | None:
        real = os.path.realpath(folder) + os.sep
        return next((one for one in ours if real.startswith(one + os.sep)), None)

    if "://" in given or of(given):
        return found
    inside = {path: own for path in found.files if (own := of(os.path.dirname(path)))}
    files = {path: stamp for path, stamp in found.files.items() if path not in inside}
    skipped = {path: why for path, why in found.skipped.items() if not of(os.path.dirname(path))}
    return replace(found, files=files, skipped=skipped | dict.fromkeys(inside.values(), _OURS))


def _once(found: Found, seen: dict[tuple[int, int], str]) -> Found:
    """Leave out files already found under another name; a file comes before links to it."""
    once = Found({}, found.skipped, found.named)
    for path in sorted(found.files, key=lambda path: (os.path.islink(path), path)):
        stamp = found.files[path]
        first = seen.setdefault(stamp.identity, path) if stamp.identity else path
        if first == path:
            once.files[path] = stamp
        else:
            once.skipped[path] = f"the same file as {first}"
    return once


def _unfit(path: str, status: os.stat_result) -> str | None:
    """Why the path cannot be read as a file; null if it can."""
    if not _is_utf8(path):
        return _NOT_UTF8
    return None if stat.S_ISREG(status.st_mode) else _NO_FILES.get(stat.S_IFMT(status.st_mode))


def _why(path: str, error: OSError) -> str:
    """Why a path cannot be inspected, as text for users."""
    if isinstance(error, FileNotFoundError) and os.path.islink(path):
        return f"a link to {shown(os.readlink(path))}, which does not exist"
    if error.errno == ELOOP:
        return "a link to itself"
    return f"{UNREADABLE}: {error.strerror}"


def _is_utf8(path: str) -> bool:
    return shown(path) == path


def shown(path: str) -> str:
    r"""A path as text; bytes that are not UTF-8 as `\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, status.st_mtime_ns, (status.st_dev, status.st_ino))


def _stamp_of(info: fs.FileInfo) -> Stamp:
    # Object stores report the time in seconds in some responses, and finer in others.
    return Stamp(info.size, info.mtime_ns and info.mtime_ns // 10**9 * 10**9)


def _difference(before: Stamp, now: Stamp | None) -> str:
    if now is None:
        return "it was removed"
    if now.identity != before.identity:
        return "another file has replaced it"
    if now.size != before.size:
        return f"it had {before.size:,} bytes, and has {now.size:,}"
    return "it was written again"


def _stamp_now(path: str) -> Stamp | None:
    if "://" not in path:
        try:
            return _stamp(os.stat(path))
        except OSError:
            return None
    filesystem, inside = located(path)
    info = filesystem.get_file_info(inside)
    return _stamp_of(info) if info.type == fs.FileType.File else None


def _uri(path: str, inside: str) -> str:
    """The URI of a file found below `path`, without credentials."""
    given = urlsplit(path)
    # In object stores the path starts with the bucket; other file systems have a host.
    place = given.netloc if inside.startswith("/") else ""
    options = f"?{given.query}" if given.query else ""
    return f"{given.scheme}://{place}{quote(inside)}{options}"
