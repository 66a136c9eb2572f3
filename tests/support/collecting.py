"""A collector in a thread of the tests, with a real socket and a real log."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn

from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.bodies import BodyLimits
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.http.protocol import PatientProtocol
from vizpub.collector.http.tokens import Tokens
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.log import records as log
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress
from vizpub.reports.pulled import ReportServer
from vizpub.reports.records import RunHeader

NDJSON = "application/x-ndjson"
RESERVE = 1


LATER = datetime(2999, 1, 1, tzinfo=UTC)


def header(began: datetime = LATER, interval_us: int = 1_000_000) -> RunHeader:
    return RunHeader(run="lab", interval_us=interval_us, epoch=began.isoformat())


@dataclass
class Served:
    """A collector without the process that makes the run."""

    web: HttpInterface
    port: int
    loop: asyncio.AbstractEventLoop

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, Any, http.client.HTTPResponse]:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, told)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        try:
            return answer.status, json.loads(text), answer
        except ValueError:
            return answer.status, text.decode(), answer

    def post(self, body: bytes, **headers: str) -> tuple[int, Any, http.client.HTTPResponse]:
        return self.ask(
            "POST",
            "/v1/runs/lab/reports",
            body,
            **{"content_type": NDJSON, **headers},
        )

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """In the collector's own thread."""
        asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/runs/lab"

    def send(self, path: str, **members: Any) -> tuple[int, Any]:
        """A JSON object, to a path below the run's."""
        told = json.dumps(members).encode()
        asked = self.ask("POST", f"/v1/runs/lab{path}", told, content_type="application/json")
        return asked[0], asked[1]

    def lines(self) -> list[bytes]:
        where = self.web.intake.place.log
        return [record.line for record in log.read_records(where) if record.kind == log.REPORT]


@contextmanager
def serving(web: Callable[[], HttpInterface], port: int = 0) -> Iterator[Served]:
    found: list[Served] = []
    ready, over = threading.Event(), threading.Event()

    async def work() -> None:
        made = web()
        config = uvicorn.Config(
            made.app(), port=port, http=PatientProtocol, ws="none", lifespan="off", log_config=None
        )
        door = config.bind_socket()
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve([door]))
        while not server.started:
            await asyncio.sleep(0.01)
        found.append(Served(made, door.getsockname()[1], asyncio.get_running_loop()))
        ready.set()
        while not over.is_set():
            await asyncio.sleep(0.01)
        made.progress.drain()
        server.should_exit = True
        await task
        await made.intake.log.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    assert ready.wait(30)
    try:
        yield found[0]
    finally:
        over.set()
        thread.join(30)


@contextmanager
def obeying(server: ReportServer, obey: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """A program that is given the commands of a server, again until it has answered them."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.01):
            for told in server.commands():
                obey(told)

    assert server.commands() == []  # from now on it can be given some
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


@dataclass
class Options:
    tokens: bool = False
    rules: ClosingRules = field(default_factory=ClosingRules)
    limits: IntakeLimits = field(default_factory=lambda: IntakeLimits(reserve=RESERVE))
    bodies: BodyLimits = field(default_factory=BodyLimits)
    began: datetime = LATER
    interval_us: int = 1_000_000
    commands: bool = False


def collector_in(folder: Path, options: Options | None = None) -> Callable[[], HttpInterface]:
    """Run `lab`, collected in a folder."""
    chosen = options or Options()

    def web() -> HttpInterface:
        place = CollectionPlace(folder, "lab")
        place.make()
        run = header(chosen.began, chosen.interval_us)
        intake = Intake(place, run, chosen.rules, chosen.limits)
        tokens = Tokens(place.tokens) if chosen.tokens else None
        progress = CollectionProgress(intake)
        return HttpInterface(
            intake, progress, tokens, chosen.bodies, ("neighbors",), chosen.commands
        )

    return web
