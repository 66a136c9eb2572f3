"""`vizpub collect`: the intake in this process, and the process that makes the run beside it.

Nothing that fails there stops the intake (`vizpub.collector.making.maker`), nor does Neo4j
(`vizpub.collector.making.loading`).
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import ssl
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn

from vizpub.collector.closing import Rules
from vizpub.collector.http import descriptors
from vizpub.collector.http.interface import Web
from vizpub.collector.http.listener import door_of, listen_at, most_connections
from vizpub.collector.http.protocol import PatientProtocol
from vizpub.collector.http.tokens import Tokens
from vizpub.collector.inputs.folder import Folder
from vizpub.collector.inputs.kafka import Kafka
from vizpub.collector.inputs.kafka_topic import Topic
from vizpub.collector.inputs.pull import Pull, Sources
from vizpub.collector.inputs.watched import WatchedTraces
from vizpub.collector.intake import Intake, Limits
from vizpub.collector.log.damage import go_past
from vizpub.collector.log.log import LogFailed
from vizpub.collector.making.batch import batches_in, consumed
from vizpub.collector.making.loading import Loading
from vizpub.collector.making.maker import Maker
from vizpub.collector.place import Place
from vizpub.collector.progress import Progress
from vizpub.collector.reservation import release, reserve
from vizpub.collector.systemd import notify
from vizpub.machine.private import open_secret
from vizpub.model.errors import StoreBroken, UseError
from vizpub.reports.records import RunHeader

NOTHING_REPORTED = "nothing was reported, so there is no run"

PAUSING = "pausing after the running append"
AS_BEFORE = "tokens and certificates remain unchanged"

TICK_S = 0.05
"""Between two looks at what can be closed."""
_MEASURE_S = 5.0
"""Between two looks at the size of the folder."""
_CONNECTIONS = 4096
_IDLE_S = 75
"""That a connection may wait for its next request: longer than most intervals."""


@dataclass(frozen=True)
class Listening:
    """Where the intake listens."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 = that of the collector before this one, which reporters know, or a free one."""
    certificate: Path | None = None
    key: Path | None = None
    tokens: bool = True
    before: int = 0
    """The port of the collector before this one; 0 = none, or it is not known."""

    def check(self) -> None:
        """Raises: UseError where the certificate and the key cannot be used, or others can read
        the key.
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
class Collection:
    """What to collect, and how."""

    place: Place
    interval_us: int = 1_000_000
    rules: Rules = field(default_factory=Rules)
    limits: Limits = field(default_factory=Limits)
    listening: Listening = field(default_factory=Listening)
    message_window: int | None = None
    betweenness: bool = True
    fields: tuple[str, ...] = ()
    commands: bool = False
    """Whether peers may be asked to leave or join."""
    watch: Path | None = None
    """A folder whose files of reports and traces are taken, too."""
    pull: tuple[str, ...] = ()
    """URLs of reporters that are asked, or files of them."""
    topic: Topic | None = None
    """A topic of Kafka that is read."""
    load: Sequence[str] = ()
    """The command that brings Neo4j up to date; none = nothing is loaded."""
    stop: bool = False
    """End the run: nothing is taken any more."""
    revive: bool = False
    """Make a run again that was removed."""
    past_damage: bool = False
    """Go on behind damage of the log, without what was in it."""

    def header(self) -> RunHeader:
        """Of a run that begins now."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return RunHeader(run=self.place.run, interval_us=self.interval_us, epoch=now)

    @property
    def job(self) -> dict[str, Any]:
        """For the process that makes the run."""
        return {
            "workspace": str(self.place.workspace.absolute()),
            "run": self.place.run,
            **(self.place.kept() if self.stop else self.options),
        }

    @property
    def options(self) -> dict[str, Any]:
        """Of the run: who ends it need not give them again."""
        return {
            "gap_tolerance": self.rules.gap_tolerance,
            "message_window": self.message_window,
            "betweenness": self.betweenness,
        }


class _Server(uvicorn.Server):
    """Signals are the collector's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing."""
        yield


class Collector:
    """One collection while it runs."""

    def __init__(self, what: Collection, say: Callable[[str], None]) -> None:
        self._what, self._say = what, say
        for damaged in go_past(what.place.log) if what.past_damage else ():
            say(f"left out of the run: {damaged}")
        self._intake = Intake(what.place, what.header(), what.rules, what.limits)
        if torn := self._intake.log.torn:
            say(f"the last {torn[1]:,} bytes of {torn[0]} were not acknowledged, and are left out")
        self._check_log()
        self._progress = Progress(self._intake)
        self._over = asyncio.Event()
        self._loading = Loading(what.load, self._progress, say)
        self._maker = Maker(what.job, self._intake, self._progress, self._loading.wake, say)
        if self._intake.header.interval_us != what.interval_us and not what.stop:
            raise UseError(
                f"run '{what.place.run}' has intervals of {self._intake.header.interval_us} µs: "
                "give the same --interval, or collect another run"
            )
        if not what.stop:
            what.place.keep(what.options)

    def _check_log(self) -> None:
        """Raises: UseError where the log ends before what was made of it: what comes then would be
        taken for that.
        """
        place, end = self._what.place, self._intake.log.end
        made = batches_in(place.batches)
        with suppress(StoreBroken):  # which stops no intake
            made.append(consumed(place.workspace / "runs" / place.run))
        position = max((one.position for one in made), default=0)
        if position > end:
            raise UseError(
                f"the log of run '{place.run}' in {place.log} ends at {end:,}, and the run has all "
                f"up to {position:,}: restore the missing part of the log, or collect another run"
            )

    async def run(self) -> None:
        """Until a signal, or the end of the run. Raises: UseError."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._over.set)
        listening = self._what.listening
        tokens = Tokens(self._what.place.tokens) if listening.tokens else None
        web = Web(
            self._intake,
            self._progress,
            tokens,
            fields=self._what.fields,
            commands=self._what.commands,
        )
        server = None if self._what.stop else await self._serve(web)
        works = [self._tick, self._maker.run, self._loading.run]
        if not self._what.stop:
            works += self._other_ends(web)
        tasks = [asyncio.create_task(work()) for work in works]
        over = asyncio.create_task(self._over.wait())
        await asyncio.wait([over, *tasks], return_when=asyncio.FIRST_COMPLETED)
        notify("STOPPING=1")
        await self._before_the_end(over, tasks[2])
        self._progress.drain()
        if server:
            server[0].should_exit = True
            await server[1]
        await self._maker.end()
        for task in (over, *tasks):
            task.cancel()
        done = await asyncio.gather(over, *tasks, return_exceptions=True)
        await self._intake.log.aclose()
        for found in done:
            if isinstance(found, Exception):
                raise found

    async def _before_the_end(self, over: asyncio.Task[Any], loading: asyncio.Task[None]) -> None:
        """Say what there is to wait for, and wait for the last load, but no longer than `over`."""
        progress, intake = self._progress, self._intake
        if progress.settled and not progress.batches:
            self._say(NOTHING_REPORTED)
        elif progress.settled and self._what.load:
            await asyncio.wait([over, loading], return_when=asyncio.FIRST_COMPLETED)
            why = progress.load_error if loading.done() else "interrupted"
            if why:
                run = self._what.place.run
                self._say(f"Neo4j does not have all of the run ({why}): vizpub load {run}")
        elif not progress.settled and intake.closed_at > progress.consumed:
            self._say(PAUSING)

    def _other_ends(self, web: Web) -> Iterator[Callable[[], Coroutine[Any, Any, None]]]:
        """What takes reports beside HTTP. Raises: UseError."""
        what = self._what
        if what.watch:
            traces = WatchedTraces(what.watch, what.place, self._say)
            yield Folder(what.watch, self._intake, self._say, web, traces.wake).follow
            yield traces.follow
        if what.pull:
            yield Pull(Sources(what.pull), self._intake, self._say, web).follow
        if what.topic:
            yield Kafka(what.topic, self._intake, self._say, web).follow

    async def _serve(self, web: Web) -> tuple[uvicorn.Server, asyncio.Task[None]]:
        """Listen, and say where."""
        to = self._what.listening
        config = uvicorn.Config(
            web.app(),
            host=to.host,
            port=to.port,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=5,
            timeout_keep_alive=_IDLE_S,
            ssl_certfile=to.certificate,
            ssl_keyfile=to.key,
        )
        most = most_connections(_CONNECTIONS)
        door = door_of(listen_at(to.host, to.port, to.before), most)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_handle)
        server = _Server(config)
        loop.add_signal_handler(signal.SIGHUP, self._reload, config, web.tokens)
        serving = asyncio.create_task(server.serve(sockets=[door]))
        while not server.started and not serving.done():
            await asyncio.sleep(TICK_S)
        port, scheme = door.getsockname()[1], "https" if to.certificate else "http"
        host = f"[{to.host}]" if ":" in to.host else to.host
        url = f"{scheme}://{host}:{port}/v1/runs/{self._what.place.run}"
        certificate = str(to.certificate.absolute()) if to.certificate else None
        self._what.place.tell(url, tokens=to.tokens, certificate=certificate)
        self._say(f"reports of run '{self._what.place.run}' are taken at {url}/reports")
        notify("READY=1")
        return server, serving

    def _reload(self, config: uvicorn.Config, tokens: Tokens | None) -> None:
        """New connections have the new certificate."""
        to = self._what.listening
        try:
            to.check()  # a context that fails to load a pair has half of it
            if tokens:
                tokens.load()
            if config.ssl and to.certificate:
                config.ssl.load_cert_chain(to.certificate, to.key)
            self._say("tokens and certificates were read again")
        except (UseError, OSError, ValueError) as error:  # or a token is no UTF-8
            self._say(f"{AS_BEFORE}: {error}")

    async def _tick(self) -> None:
        """Close what is due, until the run has ended. What the system refuses ends nothing."""
        stop, closed, measured = self._what.place.stop, self._intake.closing.closed, -_MEASURE_S
        while not self._progress.settled:
            if time.monotonic() - measured >= _MEASURE_S:
                self._progress.disk, measured = self._what.place.size(), time.monotonic()
            self._say_jump()
            await self._close_due(stop)
            if (now := self._intake.closing.closed) != closed and now is not None:
                for interval in range(now if closed is None else closed + 1, now + 1):
                    self._progress.closed(interval)
                closed = now
            self._maker.order()
            notify("WATCHDOG=1")
            await asyncio.sleep(TICK_S)
        with suppress(OSError):
            stop.unlink()

    async def _close_due(self, stop: Path) -> None:
        failed = self._intake.log.failing
        try:
            if failed:  # nobody may report meanwhile, so nothing else would find out
                await self._intake.probe()
                self._say("the log can be written again")
            if (self._what.stop or stop.exists()) and not self._intake.ended:
                await self._intake.end()
            else:
                await self._intake.close_due()
        except LogFailed as error:
            if not failed:
                self._say(f"the log cannot be written: {error}")
            await asyncio.sleep(1)
        except OSError:  # of a folder that was moved, or cannot be seen now: it is looked at again
            await asyncio.sleep(1)

    def _say_jump(self) -> None:
        if by := self._intake.clock.jump():
            self._say(
                f"this machine's clock was set {'forward' if by > 0 else 'back'} by {abs(by):,.0f} "
                "s: intervals continue as before, until the collector is restarted"
            )


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A full door is no fault."""
    if not isinstance(context.get("exception"), OSError) or "socket" not in context:
        loop.default_exception_handler(context)


def collect(what: Collection, say: Callable[[str], None]) -> bool:
    """Collect until a signal, or the end of the run. Returns whether the run has ended.

    Raises: RunLocked where another process does; UseError.
    """
    if not what.stop:
        what.listening.check()
    what.place.make()
    if shutil.disk_usage(what.place.folder).free < what.limits.reserve and not what.stop:
        raise UseError(f"less than {what.limits.reserve:,} bytes are free: see --reserve")
    descriptors.allow(2 * _CONNECTIONS)  # all else needs some, too
    with what.place.held():
        reserve(what.place, revive=what.revive)
        try:
            return _collect(what, say)
        finally:
            if what.place.is_empty:  # nothing needs the name
                release(what.place)


def _collect(what: Collection, say: Callable[[str], None]) -> bool:
    if what.stop and what.place.is_empty:
        say(NOTHING_REPORTED)
        return True
    what = replace(what, listening=replace(what.listening, before=what.place.port()))
    what.place.tell_nothing()

    async def run() -> bool:
        collector = Collector(what, say)
        await collector.run()
        return collector._progress.settled

    return asyncio.run(run())
