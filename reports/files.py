"""The report contract: the format in which peers report. Standard library only.

A report is what one peer says about one reporting interval: a JSON object on a line (NDJSON, UTF-8;
also `.gz`, and to read, if pyarrow is installed, `.zst`):

    {"format": "vizpub.report/1", "run": "poldercast-1", "peer": "17", "interval": 42, "seq": 43,
     "neighbors": ["3", {"peer": "99", "layer": "rings", "topic": "7"}],
     "topics": ["7", "12"],
     "roles": [{"role": "rendezvous", "topic": "7"}],
     "attributes": [{"key": "client", "value": "prysm"}],
     "control": {"sent": {"messages": 12, "bytes": 4023},
                 "received": {"messages": 9, "bytes": 3980}},
     "control_kinds": [{"kind": "ihave", "topic": "7", "messages_sent": 4, "ids_sent": 31}],
     "publication": {"sent": {"messages": 2, "bytes": 1024},
                     "received": {"messages": 1, "bytes": 512}},
     "duplicates": 0, "rpcs_sent": 11, "rpcs_received": 8, "gauges": {"lookups": 3, "hops": 11},
     "sent":     [{"message": "m1", "topic": "7", "publisher": "17", "to": ["3", "99"],
                   "hops": 0, "time_us": 42000100, "bytes": 512}],
     "received": [{"message": "m0", "topic": "7", "publisher": "5", "from": "99",
                   "hops": 3, "time_us": 42000050, "bytes": 512, "subscribed": true}]}

All fields but `format`, `peer` and `interval` are optional: an absent field, or null, is *unknown*,
never zero or empty (`[]` is none). A report of structure only has `neighbors`; one of dissemination
only has `sent` and `received`.

Optional fields may be added; any other change needs a new version number.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from vizpub.model.errors import InputError

from .compressed import Content, lines
from .fields import FORMATS
from .records import Json, Record, Report, RunEnd, RunHeader

_KINDS: dict[str, type[Report] | type[RunHeader] | type[RunEnd]] = {
    kind.format: kind for kind in (Report, RunHeader, RunEnd)
}


def problems(record: object) -> list[str]:
    """Return the reasons to refuse a record (a value of `json.loads`); empty for a valid one.

    The words are stable: 'no 'peer'', ''interval' is not an integer', ''control.sent.bytes'
    is negative', ''topics[]' has a control character', 'unknown format 'x'', 'not an object'.
    """
    if not isinstance(record, dict):
        return ["not an object"]
    kind = record.get("format")
    if kind is None:
        return ["no 'format'"]
    if not isinstance(kind, str) or kind not in FORMATS:
        return [f"unknown format {kind!r}"]
    # The same problem in a hundred entries is listed once.
    return list(dict.fromkeys(FORMATS[kind].problems(record, "")))


def unknown_fields(record: Json) -> list[str]:
    """Return the paths of unknown fields, such as 'sent[].colour', each once."""
    return list(dict.fromkeys(FORMATS[record["format"]].unknown_paths(record, "")))


class RepeatedKey(ValueError):
    """An object in a JSON text has a key twice: readers differ in which value counts."""

    def __init__(self) -> None:
        super().__init__("a key appears twice")


def strict_json(text: str | bytes) -> Any:
    """Parse a JSON text, in UTF-8 if it is bytes, without NaN and Infinity.

    Raises: ValueError, among them RepeatedKey; RecursionError.
    """
    # For bytes Python would also guess UTF-16 and UTF-32, which other readers do not accept.
    decoded = text if isinstance(text, str) else text.decode()
    return json.loads(
        decoded, parse_constant=_refuse_constant, object_pairs_hook=_object_of_unique_keys
    )


def parse(line: str | bytes) -> tuple[Any, list[str]]:
    """Return the JSON value of a line and its problems; for other text these are ['not UTF-8'],
    ['not JSON'] or ['a key appears twice'].
    """
    try:
        value = strict_json(line if isinstance(line, str) else line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None, ["not UTF-8"]
    except RepeatedKey as error:
        return None, [str(error)]
    except (ValueError, RecursionError):
        return None, ["not JSON"]
    return value, problems(value)


def from_json(value: Json) -> Record:
    """Return the record of a JSON object. Raises: InputError if it has problems."""
    if wrong := problems(value):
        raise InputError("; ".join(wrong))
    return _KINDS[value["format"]].from_json(value)


@dataclass(frozen=True)
class Line:
    """A line of a report file: its record, or its problems."""

    number: int
    """From 1."""
    record: Record | None
    problems: tuple[str, ...] = ()


class ReportReader:
    """Iterates over the lines of a report file, except blank ones.

    A damaged file yields the lines that can be read (a cut line has problems); afterwards `damage`
    is the reason; it is null for an undamaged file.

        reader = ReportReader(path)
        for line in reader: ...
        if reader.damage: ...
    """

    damage: str | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def __iter__(self) -> Iterator[Line]:
        with open(self._path, "rb") as stream:
            content = Content(stream)
            for number, (text, _) in enumerate(lines(content), 1):
                if text.strip():
                    value, wrong = parse(text)
                    record = None if wrong else _KINDS[value["format"]].from_json(value)
                    yield Line(number, record, tuple(wrong))
            self.damage = content.damage


class ReportWriter:
    """Writes a file of reports: the header, then reports, then optionally the end.

    The complete file appears when the writer is closed (a temporary file is synced and renamed),
    and not at all after an exception inside the `with` block. A file whose name ends in `.gz` is
    compressed (1 = fastest … 9 = smallest); the same records give the same bytes. A record that
    ingest would refuse raises InputError.

        with ReportWriter("out/17.ndjson.gz", RunHeader(run="a", interval_us=1_000_000)) as writer:
            writer.write(Report(peer="17", interval=0, neighbors=(Neighbor("3"),)))
            writer.end(last_interval=0)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: RunHeader | None = None,
        *,
        compression: int = 9,
    ) -> None:
        self._path = Path(path)
        self._run = header.run if header else None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Ingest skips names with a leading dot, which a killed writer may leave.
        self._unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        self._file = open(self._unfinished, "wb")  # noqa: SIM115
        self._stream: BinaryIO | gzip.GzipFile = self._file
        if self._path.suffix == ".gz":
            # Without name and time, the same reports give the same bytes.
            self._stream = gzip.GzipFile("", "wb", compression, fileobj=self._file, mtime=0)
        if header:
            self.write(header)

    def write(self, record: Record) -> None:
        """Append a record. Raises: InputError if it has problems."""
        value = record.to_json()
        if wrong := problems(value):
            raise InputError(f"a {type(record).__name__} cannot be written: {'; '.join(wrong)}")
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        self._stream.write(text.encode() + b"\n")

    def write_lines(self, text: bytes) -> None:
        """Append encoded lines without a check, for writers of millions of records."""
        self._stream.write(text)

    def end(self, last_interval: int) -> None:
        """Mark the end of the run."""
        self.write(RunEnd(last_interval, self._run))

    def close(self) -> None:
        """Sync the file, and give it its name."""
        try:
            if self._stream is not self._file:
                self._stream.close()
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            self.discard()
            raise
        self._file.close()
        os.replace(self._unfinished, self._path)

    def discard(self) -> None:
        """Remove the temporary file."""
        with suppress(OSError):  # a full disk also fails what closing would flush
            self._file.close()
        self._unfinished.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def _object_of_unique_keys(pairs: list[tuple[str, Any]]) -> Json:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise RepeatedKey
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
