"""`vizpub live collect`: the intake in this process, beside another process that makes the run.

No failure of that process (`vizpub.collector.making.maker`) or of Neo4j
(`vizpub.collector.making.loading`) stops the intake.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn

from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.http.listener import (
    allow_descriptors,
    bounded_socket,
    listen_at,
    most_connections,
)
from vizpub.collector.http.protocol import PatientProtocol
from vizpub.collector.http.tokens import Tokens
from vizpub.collector.inputs.folder import FolderInput
from vizpub.collector.inputs.kafka import KafkaInput
from vizpub.collector.inputs.kafka_topic import TopicWriter
from vizpub.collector.inputs.pull import PullInput, TargetList
from vizpub.collector.inputs.replicated import PostedReports
from vizpub.collector.inputs.watched import WatchedTraces
from vizpub.collector.intake import Intake
from vizpub.collector.log.damage import leave_out_damage
from vizpub.collector.log.log import LogFailed
from vizpub.collector.making.batch import batches_in, last_batch_in
from vizpub.collector.making.loading import CopyLoader
from vizpub.collector.making.maker import RunMaker
from vizpub.collector.progress import CollectionProgress
from vizpub.collector.request import CollectRequest
from vizpub.collector.reservation import check_format, release, reserve
from vizpub.collector.systemd import notify
from vizpub.model.errors import ServiceError, StoreBroken, UseError
from vizpub.runstore.store import directory_of
from vizpub.runstore.stores.remote import collecting

NOTHING_REPORTED = "nothing was reported, so there is no run"

PAUSING = "pausing after the running append"
AS_BEFORE = "tokens and certificates remain unchanged"

TICK_S = 0.05
"""Seconds between two checks for intervals to close."""
_MEASURE_S = 5.0
"""Seconds between two measurements of the folder's size."""
_CONNECTIONS = 4096
_IDLE_S = 75
"""Seconds between two requests of a connection: longer than most intervals."""


class _Server(uvicorn.Server):
    """A server that leaves signals to the collector."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


class Collector:
    """One collection while it runs."""

    def __init__(self, request: CollectRequest, say: Callable[[str], None]) -> None:
        self._request, self._say = request, say
        self._previous_port = request.place.port()
        request.place.withdraw()
        for damaged in leave_out_damage(request.place.log) if request.past_damage else ():
            say(f"left out of the run: {damaged}")
        self._intake = Intake(request.place, request.header(), request.rules, request.limits)
        if torn := self._intake.log.torn:
            say(f"the last {torn[1]:,} bytes of {torn[0]} were not acknowledged, and are left out")
        self._check_log()
        self._progress = CollectionProgress(self._intake)
        self._over = asyncio.Event()
        self._loading = CopyLoader(request.load, self._progress, say)
        self._maker = RunMaker(request.job, self._intake, self._progress, self._loading.wake, say)
        if self._intake.header.interval_us != request.interval_us and not request.stop:
            raise UseError(
                f"run '{request.place.run}' has intervals of {self._intake.header.interval_us} µs: "
                "give the same --interval, or collect another run"
            )
        request.check_replicated()
        if not request.stop:
            request.place.keep_options(request.options)

    def _check_log(self) -> None:
        """Check that the log reaches as far as its batches: else new reports would pass for old.

        Raises: UseError if it ends before.
        """
        place, end = self._request.place, self._intake.log.end
        batches = batches_in(place.batches)
        with suppress(StoreBroken, ServiceError):  # these stop no intake
            batches.append(last_batch_in(place.workspace / "runs" / place.run))
        position = max((one.position for one in batches), default=0)
        if position > end:
            raise UseError(
                f"the log of run '{place.run}' in {place.log} ends at {end:,}, and the run has all "
                f"up to {position:,}: restore the missing part of the log, or collect another run"
            )

    async def run(self) -> bool:
        """Collect until a signal, or the end of the run. Returns True if the run has ended.

        Raises: UseError.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._over.set)
        listening = self._request.listening
        tokens = Tokens(self._request.place.tokens) if listening.tokens else None
        web = HttpInterface(
            self._intake,
            self._progress,
            tokens,
            fields=self._request.fields,
            commands=self._request.commands,
        )
        # Before the first request: it may have to pass through a topic.
        inputs = () if self._request.stop else tuple(self._inputs(web))
        server = None if self._request.stop else await self._start_server(web)
        works = (self._tick, self._maker.run, self._loading.run, *inputs)
        tasks = [asyncio.create_task(work()) for work in works]
        over = asyncio.create_task(self._over.wait())
        await asyncio.wait([over, *tasks], return_when=asyncio.FIRST_COMPLETED)
        notify("STOPPING=1")
        await self._await_last_load(over, tasks[2])
        self._progress.drain()
        if server:
            server[0].should_exit = True
            await server[1]
        await self._maker.end()
        for task in (over, *tasks):
            task.cancel()
        results = await asyncio.gather(over, *tasks, return_exceptions=True)
        await self._intake.log.aclose()
        for result in results:
            if isinstance(result, Exception):
                raise result
        return self._progress.settled

    async def _await_last_load(self, over: asyncio.Task[Any], loading: asyncio.Task[None]) -> None:
        """Wait for the last load, at most until `over`, and say what is still to do."""
        progress, intake = self._progress, self._intake
        if progress.settled and not progress.batches:
            self._say(NOTHING_REPORTED)
        elif progress.settled and self._request.load:
            await asyncio.wait([over, loading], return_when=asyncio.FIRST_COMPLETED)
            why = progress.load_error if loading.done() else "interrupted"
            if why:
                run = self._request.place.run
                self._say(f"Neo4j does not have all of the run ({why}): vizpub neo4j load {run}")
        elif not progress.settled and intake.closed_at > progress.consumed:
            self._say(PAUSING)

    def _inputs(self, web: HttpInterface) -> Iterator[Callable[[], Coroutine[Any, Any, None]]]:
        """Yield the inputs beside HTTP: a folder, targets, a topic. Raises: UseError."""
        request = self._request
        if request.watch:
            traces = WatchedTraces(request.watch, request.place, self._say)
            yield FolderInput(request.watch, self._intake, self._say, web, traces.wake).follow
            yield traces.follow
        if request.pull:
            yield PullInput(TargetList(request.pull), self._intake, self._say, web).follow
        if request.topic:
            posted = PostedReports(TopicWriter(request.topic)) if request.replicated else None
            yield KafkaInput(request.topic, self._intake, self._say, web, posted=posted).follow

    async def _start_server(self, web: HttpInterface) -> tuple[uvicorn.Server, asyncio.Task[None]]:
        """Listen for reports, and announce the address. Returns the server and its task."""
        listening = self._request.listening
        config = uvicorn.Config(
            web.app(),
            host=listening.host,
            port=listening.port,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=5,
            timeout_keep_alive=_IDLE_S,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.key,
        )
        connections = most_connections(_CONNECTIONS)
        plain = listen_at(listening.host, listening.port, self._previous_port)
        door = bounded_socket(plain, connections)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_ignore_full_socket)
        server = _Server(config)
        loop.add_signal_handler(signal.SIGHUP, self._reload, config, web.tokens)
        serving = asyncio.create_task(server.serve(sockets=[door]))
        while not server.started and not serving.done():
            await asyncio.sleep(TICK_S)
        if serving.done():
            await serving  # raises why
            raise UseError(f"no requests can be taken at {listening.host}; see the messages above")
        port, scheme = door.getsockname()[1], "https" if listening.certificate else "http"
        host = f"[{listening.host}]" if ":" in listening.host else listening.host
        url = f"{scheme}://{host}:{port}/v1/runs/{self._request.place.run}"
        certificate = str(listening.certificate.absolute()) if listening.certificate else None
        self._request.place.announce(url, tokens=listening.tokens, certificate=certificate)
        self._say(f"reports of run '{self._request.place.run}' are taken at {url}/reports")
        if web.tokens:
            self._say(f"tokens (report, read, admin) are in {web.tokens.folder.absolute()}")
        notify("READY=1")
        return server, serving

    def _reload(self, config: uvicorn.Config, tokens: Tokens | None) -> None:
        """Read tokens and the certificate again. New connections get the new certificate."""
        listening = self._request.listening
        try:
            listening.check()  # a context that fails to load a pair would keep half of it
            if tokens:
                tokens.load()
            if config.ssl and listening.certificate:
                config.ssl.load_cert_chain(listening.certificate, listening.key)
            self._say("tokens and certificates were read again")
        except (UseError, OSError, ValueError) as error:  # or a token is no UTF-8
            self._say(f"{AS_BEFORE}: {error}")

    async def _tick(self) -> None:
        """Close due intervals until the run has ended; errors of the system do not stop it."""
        stop, closed, measured = self._request.place.stop, self._intake.closing.closed, -_MEASURE_S
        while not self._progress.settled:
            if time.monotonic() - measured >= _MEASURE_S:
                self._progress.disk, measured = self._request.place.size(), time.monotonic()
            self._say_jump()
            await self._close_due(stop)
            if (last := self._intake.closing.closed) != closed and last is not None:
                for interval in range(last if closed is None else closed + 1, last + 1):
                    self._progress.note_closed(interval)
                closed = last
            self._maker.order()
            notify("WATCHDOG=1")
            await asyncio.sleep(TICK_S)
        with suppress(OSError):
            stop.unlink()

    async def _close_due(self, stop: Path) -> None:
        failed = self._intake.log.failing
        try:
            if failed:  # without new reports nothing else would find out
                await self._intake.probe()
                self._say("the log can be written again")
            if (self._request.stop or stop.exists()) and not self._intake.ended:
                await self._intake.end()
            else:
                await self._intake.close_due()
        except LogFailed as error:
            if not failed:
                self._say(f"the log cannot be written: {error}")
            await asyncio.sleep(1)
        except OSError:  # the folder was moved, or cannot be seen now: the next turn looks again
            await asyncio.sleep(1)

    def _say_jump(self) -> None:
        if by := self._intake.clock.jump():
            self._say(
                f"this machine's clock was set {'forward' if by > 0 else 'back'} by {abs(by):,.0f} "
                "s: intervals continue as before, until the collector is restarted"
            )


def _ignore_full_socket(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report errors of the event loop, except a listening socket that is full."""
    if not isinstance(context.get("exception"), OSError) or "socket" not in context:
        loop.default_exception_handler(context)


def collect(request: CollectRequest, say: Callable[[str], None]) -> bool:
    """Collect until a signal, or the end of the run. Returns True if the run has ended.

    Raises: RunLocked if another process collects it; OtherFormat, UseError.
    """
    if not request.stop:
        request.listening.check()
    check_format(request.place)
    request.place.make()
    if shutil.disk_usage(request.place.folder).free < request.limits.reserve and not request.stop:
        raise UseError(
            f"less than {request.limits.reserve:,} bytes are free: free some, or give a smaller "
            "--reserve"
        )
    allow_descriptors(2 * _CONNECTIONS)  # files and inputs need some, too
    with request.place.hold():
        reserve(request.place, revive=request.revive)
        try:
            if request.stop and request.place.is_empty:
                say(NOTHING_REPORTED)
                return True
            with collecting(directory_of(request.place.workspace, request.place.run)):
                return asyncio.run(Collector(request, say).run())
        finally:
            if request.place.is_empty:  # nothing needs the name
                release(request.place)
