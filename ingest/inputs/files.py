"""Resolving of paths to files: files, folders with all below them, globs, URIs.

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
from glob import escape, glob, has_magic
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from vizpub.machine.modules import needing_extra
from vizpub.model.errors import InputError, ServiceError
from vizpub.runstore.stores.hdfs import FEW_ATTEMPTS

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
_HIDDEN = "a hidden folder: name the folder to read it"
_LINKED = "a link to a folder: name the folder to read it"
_PIPE = "a pipe"
_OWN_FOLDER = "the workspace's own: name it to read it"
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
_GOOGLE = ("gs", "gcs")
_GOOGLE_LIMIT = "retry_limit_seconds"
_GOOGLE_LIMIT_S = 30
"""Arrow's own limit is a quarter of an hour."""


@dataclass(frozen=True)
class FileStamp:
    """State of a file; it changes when the file is written again."""

    size: int
    mtime_ns: int | None
    identity: tuple[int, int] | None = None
    """Device and inode; null where the file system has none."""


@dataclass(frozen=True)
class ResolvedPath:
    """Files that a path given by the user leads to."""

    files: dict[str, FileStamp] = field(default_factory=dict)
    """By absolute path or URI."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Paths that cannot be read as a file, and why."""
    names_file: bool = False
    """The path names the file itself, not a folder or a pattern."""


@dataclass(frozen=True)
class InputFile:
    """A file to ingest, as the inventory found it."""

    path: str
    encoding: str
    """The encoding that its source recognised: 'json', 'protobuf', 'csv', …"""
    size: int
    sha256: str
    stamp: FileStamp | None = field(default=None, compare=False, repr=False)
    """Its state before it was inspected."""

    @property
    def manifest_entry(self) -> dict[str, Any]:
        """Entry of the file in run.json before it is read."""
        fields = {name: value for name, value in asdict(self).items() if name != "stamp"}
        return {**fields, "damage": None}


def find_files(paths: Iterable[str], without: Iterable[str] = ()) -> dict[str, ResolvedPath]:
    """Resolve the paths. A file that several paths lead to belongs to the first of them. Files in
    the folders `without` are left out, unless the path leads into one of them.

    Raises: InputError where a path does not exist or has an unknown file system, and where it
    cannot be read as a file: a pipe, a device, a broken link.
    """
    seen: dict[tuple[int, int], str] = {}
    ours = [os.path.realpath(folder) for folder in without]
    return {
        path: _drop_aliases(_without_own_folders(_expand(path), path, ours), seen) for path in paths
    }


def check_unchanged(stamps: Mapping[str, FileStamp]) -> None:
    """Check that files, by path or URI, have not changed since they were read.

    Raises: InputError for a file that has.
    """
    with ThreadPoolExecutor() as pool:  # a remote one is slow to answer
        current_stamps = dict(zip(stamps, pool.map(_current_stamp, stamps), strict=True))
    for path, expected in stamps.items():
        if (current := current_stamps[path]) != expected:
            raise InputError(
                f"{path_text(path)} {CHANGED}: {_difference(expected, current)}",
                "give a file that is no longer written to, for example a copy",
            )


def locate(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or URI, and the path in it. Raises: InputError; UseError
    for HDFS without the extra `hdfs`.
    """
    uri = urlsplit(path)
    if uri.scheme in _WEB and "://" in path:
        raise InputError(
            f"{path}: {FROM_THE_WEB}, because it is read more than once",
            f"pipe it in: curl -fsSL '{path}' | vizpub ingest - --run NAME",
        )
    if uri.scheme in _GOOGLE and _GOOGLE_LIMIT not in uri.query:
        path += f"{'&' if uri.query else '?'}{_GOOGLE_LIMIT}={_GOOGLE_LIMIT_S}"
    try:
        if uri.scheme == "hdfs" and "://" in path:
            return _in_hdfs(uri.netloc), unquote(uri.path)
        filesystem_and_path: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(
            path if "://" in path else os.path.abspath(path)
        )
        return filesystem_and_path
    except (pa.ArrowException, OSError, RuntimeError) as error:  # the last is hdfs-native's
        raise InputError(f"{NO_SUCH_PATH}: {path}", str(error)) from error


@cache
def _in_hdfs(authority: str) -> fs.FileSystem:
    """pyarrow's own file system needs a library of Hadoop's, which no wheel has."""
    with needing_extra("hdfs", "input in HDFS"):
        from hdfs_native.fsspec import HdfsFileSystem
    # In forked processes fsspec empties its cache, and hdfs-native waits forever for its threads.
    client = HdfsFileSystem(authority, None, skip_instance_cache=True, **FEW_ATTEMPTS)
    return fs.PyFileSystem(fs.FSSpecHandler(client))


def _expand(path: str) -> ResolvedPath:
    if not path:  # which would be the working directory
        raise InputError(EMPTY_PATH, f"give files, folders or globs, {EXAMPLE}")
    if "://" not in path:
        return _expand_local(path, os.path.abspath(path))
    filesystem, inside = locate(path)
    if isinstance(filesystem, fs.LocalFileSystem):
        return _expand_local(path, inside)
    try:
        info = filesystem.get_file_info(inside)
        is_file = info.type == fs.FileType.File
        below = fs.FileSelector(inside, recursive=True, allow_not_found=True)
        entries = [info] if is_file else filesystem.get_file_info(below)
    except (OSError, RuntimeError) as error:  # the latter is hdfs-native's
        raise ServiceError(
            f"{path} cannot be reached ({error}): check the address and your credentials, or try "
            "again"
        ) from error
    if info.type == fs.FileType.NotFound:
        raise _no_such_path(path)
    files = {_uri(path, e.path): _stamp_of_info(e) for e in entries if e.type == fs.FileType.File}
    return _check_not_empty(path, ResolvedPath(files, names_file=is_file))


def _expand_local(argument: str, path: str) -> ResolvedPath:
    try:
        status = os.stat(path)
    except OSError as error:
        return _expand_pattern(argument, path, error)
    if stat.S_ISDIR(status.st_mode):
        return _check_not_empty(argument, _gather([path]))
    why = _why_unfit(path, status)
    if path.startswith(_OF_PROCESS):  # other processes find something else there
        path = os.path.realpath(path)
        why = why or (None if os.path.exists(path) else _PIPE)
    if why:
        raise InputError(f"{path_text(argument)}: {why}", _AS_FILE if why != _NOT_UTF8 else "")
    return ResolvedPath({path: _stamp_of_status(status)}, names_file=True)


def _expand_pattern(argument: str, path: str, error: OSError) -> ResolvedPath:
    """Return the files that match a path as a pattern. Raises: InputError if there are none."""
    if os.path.lexists(path) or not isinstance(error, FileNotFoundError):
        raise InputError(f"{path_text(argument)}: {_why_unreadable(path, error)}")
    matches = set(_glob(path)) if has_magic(path) else set()
    if not matches:
        raise _no_such_path(argument)
    linked = {match for match in matches if os.path.islink(match) and os.path.isdir(match)}
    if len(matches) == 1 and not linked:
        return _expand_local(argument, *matches)
    resolved = _gather(matches - linked)
    resolved.skipped.update((path_text(link), _LINKED) for link in linked)
    return resolved


def _glob(pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern; unlike that of glob, `**` follows no links."""
    above, deep, below = (pattern + os.sep).partition(_DEEP)
    if not deep:
        yield from glob(pattern)
        return
    for top in glob(above):
        for place, folders, _ in os.walk(top):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from _glob(os.path.join(escape(place), below).rstrip(os.sep))


def _no_such_path(path: str) -> InputError:
    return InputError(
        f"{NO_SUCH_PATH}: {path_text(path)}", f"give files, folders or globs, {EXAMPLE}"
    )


def _check_not_empty(path: str, resolved: ResolvedPath) -> ResolvedPath:
    """Return the resolved path unchanged. Raises: InputError if it has no files."""
    if not resolved.files:
        check_readable(resolved.skipped)
        reasons = [f"{name}: {why}" for name, why in resolved.skipped.items()]
        raise InputError(
            f"{path_text(path)} {NO_FILES_IN}",
            "; ".join(reasons[:_SHOWN]) or f"give one with traces, {EXAMPLE}",
        )
    return resolved


def check_readable(left_out: Mapping[str, str | None]) -> None:
    """Check the reasons why files are left out, by path. Raises: InputError for unreadable ones."""
    lost = [f"{path}: {why}" for path, why in left_out.items() if why and UNREADABLE in why]
    if lost:
        more = f"; and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        raise InputError("; ".join(lost[:_SHOWN]) + more, _READABLE)


def _gather(paths: Iterable[str]) -> ResolvedPath:
    """Return the given files, and all files below the given folders."""
    resolved = ResolvedPath()
    for path in paths:
        for inside in _files_below(path, resolved.skipped) if os.path.isdir(path) else [path]:
            try:
                status = os.stat(inside)
            except OSError as error:
                resolved.skipped[path_text(inside)] = _why_unreadable(inside, error)
                continue
            if why := _why_unfit(inside, status):
                resolved.skipped[path_text(inside)] = why
            else:
                resolved.files[inside] = _stamp_of_status(status)
    return resolved


def _files_below(folder: str, skipped: dict[str, str]) -> Iterator[str]:
    """Yield the files below a folder; links to folders are not followed."""

    def skip(error: OSError) -> None:
        skipped[path_text(error.filename)] = _why_unreadable(error.filename, error)

    for place, folders, names in os.walk(folder, onerror=skip):
        for path in (os.path.join(place, name) for name in tuple(folders)):
            if os.path.basename(path).startswith("."):
                skipped[path_text(path)] = _HIDDEN
                folders.remove(os.path.basename(path))
            elif os.path.islink(path):
                skipped[path_text(path)] = _LINKED
            elif not _is_utf8(path):
                skipped[path_text(path)] = _NOT_UTF8
                folders.remove(os.path.basename(path))
        yield from (os.path.join(place, name) for name in names)


def _without_own_folders(
    resolved: ResolvedPath, argument: str, ours: Sequence[str]
) -> ResolvedPath:
    """Leave out files in the workspace's own folders, unless the path leads into one of these."""

    @cache
    def of(folder: str) -> str | None:
        real = os.path.realpath(folder) + os.sep
        return next(
            (own_folder for own_folder in ours if real.startswith(own_folder + os.sep)), None
        )

    if "://" in argument or of(argument):
        return resolved
    inside = {
        path: folder_of_path
        for path in resolved.files
        if (folder_of_path := of(os.path.dirname(path)))
    }
    files = {path: stamp for path, stamp in resolved.files.items() if path not in inside}
    skipped = {path: why for path, why in resolved.skipped.items() if not of(os.path.dirname(path))}
    return replace(
        resolved, files=files, skipped=skipped | dict.fromkeys(inside.values(), _OWN_FOLDER)
    )


def _drop_aliases(resolved: ResolvedPath, seen: dict[tuple[int, int], str]) -> ResolvedPath:
    """Leave out files seen under another name; a file comes before links to it."""
    distinct = ResolvedPath({}, resolved.skipped, resolved.names_file)
    for path in sorted(resolved.files, key=lambda path: (os.path.islink(path), path)):
        stamp = resolved.files[path]
        first = seen.setdefault(stamp.identity, path) if stamp.identity else path
        if first == path:
            distinct.files[path] = stamp
        else:
            distinct.skipped[path] = f"the same file as {first}"
    return distinct


def _why_unfit(path: str, status: os.stat_result) -> str | None:
    """Return the reason why the path cannot be read as a file; null if it can."""
    if not _is_utf8(path):
        return _NOT_UTF8
    return None if stat.S_ISREG(status.st_mode) else _NO_FILES.get(stat.S_IFMT(status.st_mode))


def _why_unreadable(path: str, error: OSError) -> str:
    """Return the reason why a path cannot be inspected, as text for users."""
    if isinstance(error, FileNotFoundError) and os.path.islink(path):
        return f"a link to {path_text(os.readlink(path))}, which does not exist"
    if error.errno == ELOOP:
        return "a link to itself"
    return f"{UNREADABLE}: {error.strerror}"


def _is_utf8(path: str) -> bool:
    return path_text(path) == path


def path_text(path: str) -> str:
    r"""Return a path as text; bytes that are not UTF-8 become `\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _stamp_of_status(status: os.stat_result) -> FileStamp:
    return FileStamp(status.st_size, status.st_mtime_ns, (status.st_dev, status.st_ino))


def _stamp_of_info(info: fs.FileInfo) -> FileStamp:
    # Object stores report the time in seconds in some responses, and finer in others.
    return FileStamp(info.size, info.mtime_ns and info.mtime_ns // 10**9 * 10**9)


def _difference(expected: FileStamp, current: FileStamp | None) -> str:
    if current is None:
        return "it was removed"
    if current.identity != expected.identity:
        return "another file has replaced it"
    if current.size != expected.size:
        return f"it had {expected.size:,} bytes, and has {current.size:,}"
    return "it was written again"


def _current_stamp(path: str) -> FileStamp | None:
    if "://" not in path:
        try:
            return _stamp_of_status(os.stat(path))
        except OSError:
            return None
    filesystem, inside = locate(path)
    info = filesystem.get_file_info(inside)
    return _stamp_of_info(info) if info.type == fs.FileType.File else None


def _uri(path: str, inside: str) -> str:
    """Return the URI of a file below the URI `path`, without credentials."""
    parts = urlsplit(path)
    # In object stores the path starts with the bucket; other file systems have a host.
    place = parts.netloc if inside.startswith("/") else ""
    options = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{place}{quote(inside)}{options}"
