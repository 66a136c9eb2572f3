"""The request to collect a run: what `vizpub live collect` was asked for."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vizpub.collector.closing import ClosingRules
from vizpub.collector.inputs.kafka_topic import Topic
from vizpub.collector.inputs.replicated import share_header
from vizpub.collector.intake import IntakeLimits
from vizpub.collector.place import CollectionPlace
from vizpub.machine.private import open_secret
from vizpub.model.errors import UseError
from vizpub.reports.records import RunHeader

_REPLICATED = "replicated"


@dataclass(frozen=True)
class ListenOptions:
    """The address of the intake, and its security."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 = that of the previous collector, which reporters know, or a free one."""
    certificate: Path | None = None
    key: Path | None = None
    tokens: bool = True

    def check(self) -> None:
        """Check the certificate and the key.

        Raises: UseError if they cannot be used, or others can read the key.
        """
        if self.certificate is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except OSError as error:  # an SSLError is one
            raise UseError(
                f"the certificate {self.certificate} with the key {self.key} cannot be used: "
                f"{error.strerror or error}"
            ) from error
        open_secret(self.key or self.certificate).close()


@dataclass(frozen=True)
class CollectRequest:
    """The run to collect, and the options of the collector."""

    place: CollectionPlace
    interval_us: int = 1_000_000
    rules: ClosingRules = field(default_factory=ClosingRules)
    limits: IntakeLimits = field(default_factory=IntakeLimits)
    listening: ListenOptions = field(default_factory=ListenOptions)
    message_window: int | None = None
    betweenness: bool = True
    fields: tuple[str, ...] = ()
    commands: bool = False
    """True if peers may be asked to leave or join."""
    watch: Path | None = None
    """A folder with files of reports and traces to collect, too."""
    pull: tuple[str, ...] = ()
    """URLs of reporters to ask, or files with such URLs."""
    topic: Topic | None = None
    """A topic of Kafka to read."""
    load: Sequence[str] = ()
    """The command that updates Neo4j; empty = nothing is loaded."""
    stop: bool = False
    """End the run: no more reports are accepted."""
    revive: bool = False
    """Rebuild a run that was removed."""
    past_damage: bool = False
    """Continue behind damage of the log, without the damaged part."""
    keep: int | None = None
    """The intervals that the run keeps; older ones leave it. Null: all stay."""
    replicated: bool = False
    """True if what peers post goes through the topic, to all collectors of the run."""

    def header(self) -> RunHeader:
        """Return the header of a run that begins now, or which another collector has begun.

        Raises: UseError, ServiceError.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        header = RunHeader(run=self.place.run, interval_us=self.interval_us, epoch=now)
        if self.replicated and self.topic and self.place.is_empty:
            return share_header(self.topic, header)
        return header

    def check_replicated(self) -> None:
        """Check that the collection is replicated as it began. Raises: UseError."""
        began = self.place.kept_options().get(_REPLICATED, False)
        if began != self.replicated and not (self.stop or self.place.is_empty):
            how = "with --replicated: give it" if began else "without --replicated: leave it out"
            raise UseError(f"the collection of run '{self.place.run}' began {how}")

    @property
    def job(self) -> dict[str, Any]:
        """The `BatchJob` of the process that makes the run, as JSON."""
        options = self.place.kept_options() if self.stop else self.options
        return {
            "workspace": str(self.place.workspace.absolute()),
            "run": self.place.run,
            **{name: value for name, value in options.items() if name != _REPLICATED},
        }

    @property
    def options(self) -> dict[str, Any]:
        """The options of the run, which are stored: ending it later needs none of them."""
        return {
            "gap_tolerance": self.rules.gap_tolerance,
            "message_window": self.message_window,
            "betweenness": self.betweenness,
            "keep": self.keep,
            _REPLICATED: self.replicated,
        }
