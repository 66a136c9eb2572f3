"""`vizpub collect`: the intake in this process, and the process that makes the run beside it.

Nothing that fails there stops the intake: a process that ends is started again, later each time.
The copy in Neo4j follows by `vizpub load`, one command after the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn

from collector.batch import batches_in
from collector.closing import Rules
from collector.folder import Folder
from collector.intake import Intake, Limits
from collector.log import LogFailed
from collector.notify import notify
from collector.place import Place
from collector.progress import Progress
from collector.protocol import PatientProtocol
from collector.tokens import Tokens
from collector.web import Web
from ingest.reports.records import RunHeader
from model.errors import UseError

TICK_S = 0.05
"""Between two looks at what can be closed."""
_FIRST_PAUSE_S, _MOST_PAUSE_S = 1.0, 60.0
"""Before a process that ended is started again."""
_END_S = 120.0
"""That the process which makes the run has to end its append."""
_CONNECTIONS = 4096


@dataclass(frozen=True)
class Listening:
    """Where the intake listens."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 = a free one."""
    certificate: Path | None = None
    key: Path | None = None
    tokens: bool = True


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
    watch: Path | None = None
    """A folder whose files of reports are taken, too."""
    load: Sequence[str] = ()
    """The command that brings Neo4j up to date; none = nothing is loaded."""
    stop: bool = False
    """End the run: nothing is taken any more."""

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
        self._intake = Intake(what.place, what.header(), what.rules, what.limits)
        self._progress = Progress(self._intake)
        self._over = asyncio.Event()
        self._child: Process | None = None
        self._told: tuple[int, bool] | None = None
        self._to_load = asyncio.Event()
        if self._intake.header.interval_us != what.interval_us:
            raise UseError(
                f"run '{what.place.run}' has intervals of {self._intake.header.interval_us} µs: "
                "give the same --interval, or collect another run"
            )

    async def run(self) -> None:
        """Until a signal, or the end of the run. Raises: UseError."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._over.set)
        listening = self._what.listening
        tokens = Tokens(self._what.place.tokens) if listening.tokens else None
        if tokens:
            loop.add_signal_handler(signal.SIGHUP, self._reload, tokens)
        web = Web(self._intake, self._progress, tokens, fields=self._what.fields)
        server = None if self._what.stop else await self._serve(web)
        works = [self._tick, self._append, self._load]
        if self._what.watch and not self._what.stop:
            works.append(Folder(self._what.watch, self._intake, self._say).follow)
        tasks = [asyncio.create_task(work()) for work in works]
        over = asyncio.create_task(self._over.wait())
        await asyncio.wait([over, *tasks], return_when=asyncio.FIRST_COMPLETED)
        notify("STOPPING=1")
        if self._progress.settled and self._what.load:
            await tasks[2]
        self._progress.draining = True
        if server:
            server[0].should_exit = True
            await server[1]
        await self._end_child()
        for task in (over, *tasks):
            task.cancel()
        done = await asyncio.gather(over, *tasks, return_exceptions=True)
        await self._intake.log.aclose()
        for found in done:
            if isinstance(found, Exception):
                raise found

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
            ssl_certfile=to.certificate,
            ssl_keyfile=to.key,
        )
        try:
            socket = config.bind_socket()
        except (SystemExit, OSError) as error:
            raise UseError(
                f"cannot listen at {to.host}:{to.port}: is another one there?"
            ) from error
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[socket]))
        while not server.started and not serving.done():
            await asyncio.sleep(TICK_S)
        port, scheme = socket.getsockname()[1], "https" if to.certificate else "http"
        host = f"[{to.host}]" if ":" in to.host else to.host
        url = f"{scheme}://{host}:{port}/v1/runs/{self._what.place.run}"
        certificate = str(to.certificate.absolute()) if to.certificate else None
        self._what.place.tell(url=url, tokens=to.tokens, certificate=certificate)
        self._say(f"reports of run '{self._what.place.run}' are taken at {url}/reports")
        notify("READY=1")
        return server, serving

    def _reload(self, tokens: Tokens) -> None:
        try:
            tokens.load()
            self._say("the tokens were read again")
        except (UseError, OSError) as error:
            self._say(f"the tokens stay as they were: {error}")

    async def _tick(self) -> None:
        """Close what is due, until the run has ended."""
        stop, closed = self._what.place.stop, self._intake.closing.closed
        while not self._progress.settled:
            try:
                if (self._what.stop or stop.exists()) and not self._intake.ended:
                    await self._intake.end()
                else:
                    await self._intake.close_due()
            except LogFailed as error:
                self._say(f"the log cannot be written: {error}")
                await asyncio.sleep(1)
            if (now := self._intake.closing.closed) != closed and now is not None:
                for interval in range(now if closed is None else closed + 1, now + 1):
                    self._progress.closed(interval)
                closed = now
            self._order()
            notify("WATCHDOG=1")
            await asyncio.sleep(TICK_S)
        with suppress(FileNotFoundError):
            stop.unlink()

    def _order(self) -> None:
        """Tell the process that makes the run what it has to do, once."""
        order = self._intake.closed_at, self._intake.ended
        if self._progress.alive and order[0] and order != self._told and self._child:
            assert self._child.stdin
            self._told = order
            told = {"until": order[0], "ended": order[1]}
            with suppress(OSError):
                self._child.stdin.write(json.dumps(told).encode() + b"\n")

    async def _append(self) -> None:
        """Keep the process that makes the run alive, until the run has ended."""
        pause = _FIRST_PAUSE_S
        while not self._progress.settled:
            batches = self._progress.batches
            code = await self._live()
            self._progress.alive = False
            if self._progress.settled or self._progress.draining:
                return
            pause = _FIRST_PAUSE_S if self._progress.batches > batches else 2 * pause
            pause = min(pause, _MOST_PAUSE_S)
            why = self._progress.error or f"exit code {code}"
            self._say(f"appending stopped ({why}): it is tried again in {pause:g} s")
            await asyncio.sleep(pause)

    async def _live(self) -> int:
        """Run the process once."""
        answers, pipe = os.pipe()
        arguments = (sys.executable, "-m", "collector.batches", str(pipe))
        # Ctrl-C is for this process alone, which lets the other one end its append.
        self._child = await asyncio.create_subprocess_exec(
            *arguments, stdin=PIPE, stdout=DEVNULL, pass_fds=(pipe,), start_new_session=True
        )
        os.close(pipe)
        assert self._child.stdin
        self._child.stdin.write(json.dumps(self._what.job).encode() + b"\n")
        self._told = None
        reader = asyncio.StreamReader(limit=2**26)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb")
        )
        try:
            while line := await reader.readline():
                self._answer(json.loads(line))
        finally:
            transport.close()
        return await self._child.wait()

    def _answer(self, told: dict[str, Any]) -> None:
        if "error" in told:
            self._progress.error = told["error"]
        elif "ready" in told:
            self._progress.alive = True
            self._progress.batches = told["number"]
            self._progress.consumed = max(told["position"], self._progress.consumed)
        elif "settled" in told:
            self._progress.settled = True
            self._to_load.set()
        else:
            self._progress.committed(told)
            self._intake.log.drop(told["needed"])
            self._to_load.set()

    async def _load(self) -> None:
        """Bring Neo4j up to date, again and again."""
        while self._what.load:
            await self._to_load.wait()
            self._to_load.clear()
            settled, done = self._progress.settled, self._progress.done
            loading = await asyncio.create_subprocess_exec(
                *self._what.load, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, start_new_session=True
            )
            _, told = await loading.communicate()
            if loading.returncode == 0:
                self._progress.loaded, self._progress.load_error = done, None
            else:
                lines = told.decode("utf-8", "replace").strip().splitlines()
                self._progress.load_error = (
                    lines[-1] if lines else f"exit code {loading.returncode}"
                )
                self._to_load.set()
                await asyncio.sleep(_FIRST_PAUSE_S)
            if settled:
                return
        await asyncio.Event().wait()

    async def _end_child(self) -> None:
        """Let the process end its append."""
        if self._child is None or self._child.returncode is not None:
            return
        assert self._child.stdin
        self._child.stdin.close()
        try:
            async with asyncio.timeout(_END_S):
                await self._child.wait()
        except TimeoutError:
            self._child.kill()
            await self._child.wait()


def collect(what: Collection, say: Callable[[str], None]) -> bool:
    """Collect until a signal, or the end of the run. Returns whether the run has ended.

    Raises: RunLocked where another process does; UseError.
    """
    what.place.make()
    if shutil.disk_usage(what.place.folder).free < what.limits.reserve and not what.stop:
        raise UseError(f"less than {what.limits.reserve:,} bytes are free: see --reserve")
    with what.place.held():

        async def run() -> bool:
            collector = Collector(what, say)
            await collector.run()
            return collector._progress.settled

        return asyncio.run(run())


def has_batches(place: Place) -> bool:
    """Whether anything was ever closed."""
    return bool(batches_in(place.batches))
