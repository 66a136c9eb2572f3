"""What the intake costs over an application that only stores: `python -m benchmarks.intake`.

Both run on uvicorn and sync together what waits, with the same log; the bare one judges nothing. A
request has the report of one peer. Figures are ratios of one run of the benchmark: requests per
second as fast as they are answered, and the 50th and 99th percentile of the answers at a fixed
rate, from the time at which a request was due.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing as mp
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vizpub.collector.closing import ClosingRules
from vizpub.collector.http.interface import HttpInterface
from vizpub.collector.http.protocol import PatientProtocol
from vizpub.collector.intake import Intake, IntakeLimits
from vizpub.collector.log.log import ReportLog
from vizpub.collector.log.records import report
from vizpub.collector.place import CollectionPlace
from vizpub.collector.progress import CollectionProgress
from vizpub.reports.records import RunHeader

_EPOCH = "2026-11-20T10:00:00Z"
_CONNECTIONS = 16
PEERS = 1000


def bare(folder: Path) -> Starlette:
    """Stores bodies as they come."""
    log = ReportLog(folder, lambda: b"{}")

    async def take(request: Request) -> Response:
        body = await request.body()
        await log.put(report(0, body), lambda _: None)
        return JSONResponse({"taken": 1}, 202)

    return Starlette(routes=[Route("/v1/runs/lab/reports", take, methods=["POST"])])


def intake(folder: Path) -> Starlette:
    """Judges and stores: the collector's own, without the process that makes the run."""
    place = CollectionPlace(folder, "lab")
    place.make()
    header = RunHeader(run="lab", interval_us=1_000_000, epoch=_EPOCH)
    taking = Intake(place, header, ClosingRules(ahead=10**6), IntakeLimits(reserve=1))
    return HttpInterface(taking, CollectionProgress(taking)).app()


def serve(make: Callable[[Path], Starlette], folder: Path, ready: Connection) -> None:
    """Serve in a process of its own, which is killed at the end."""

    async def work() -> None:
        config = uvicorn.Config(
            make(folder),
            port=0,
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
        )
        door = config.bind_socket()
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([door]))
        while not server.started:
            await asyncio.sleep(0.01)
        ready.send(door.getsockname()[1])
        await serving

    asyncio.run(work())


def report_line(number: int, links: int) -> bytes:
    """A report of one peer."""
    peer, interval = number % PEERS, number // PEERS
    fields = {
        "format": "vizpub.report/1",
        "peer": f"p{peer}",
        "interval": interval,
        "seq": interval + 1,
        "neighbors": [f"p{(peer + n * n + 1) % PEERS}" for n in range(links)],
        "topics": ["news"],
        "sent": [],
        "received": [],
    }
    return json.dumps(fields).encode() + b"\n"


def request(number: int, links: int) -> bytes:
    """It, as HTTP."""
    body = report_line(number, links)
    head = (
        "POST /v1/runs/lab/reports HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: application/x-ndjson\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Load:
    """Requests over some connections."""

    def __init__(self, port: int, links: int, connections: int = _CONNECTIONS) -> None:
        self._port, self._links, self._connections = port, links, connections
        self._number = 0
        self.seconds: list[float] = []

    async def run(self, seconds: float, rate: float | None = None) -> float:
        """Send for so long, as fast as possible or at a rate. Returns requests per second."""
        self.seconds = []
        self._began = time.perf_counter()
        self._due = 0
        await asyncio.gather(*(self._work(seconds, rate) for _ in range(self._connections)))
        return len(self.seconds) / (time.perf_counter() - self._began)

    async def _work(self, seconds: float, rate: float | None) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while True:
            now = time.perf_counter() - self._began
            due = now
            if rate:
                due, self._due = self._due / rate, self._due + 1
                await asyncio.sleep(max(due - now, 0))
            if due >= seconds:
                break
            self._number += 1
            writer.write(request(self._number, self._links))
            head = await reader.readuntil(b"\r\n\r\n")
            assert b" 202 " in head, head
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(size)
            self.seconds.append(time.perf_counter() - self._began - due)
        writer.close()
        await writer.wait_closed()

    def percentile(self, share: float) -> float:
        """Milliseconds."""
        return 1000 * sorted(self.seconds)[int(share * (len(self.seconds) - 1))]


def measure_intake(
    make: Callable[[Path], Starlette], options: argparse.Namespace
) -> tuple[float, float, float]:
    """Requests per second, and two percentiles in ms at the rate."""
    ours, theirs = mp.get_context("spawn").Pipe()
    with TemporaryDirectory() as folder:
        process = mp.get_context("spawn").Process(target=serve, args=(make, Path(folder), theirs))
        process.start()
        try:
            load = Load(ours.recv(), options.links)
            asyncio.run(load.run(1.0))  # warm
            most = asyncio.run(load.run(options.seconds))
            asyncio.run(load.run(options.seconds, options.rate))
            return most, load.percentile(0.5), load.percentile(0.99)
        finally:
            process.kill()
            process.join()


def main() -> None:
    """Measure both, in turns, and print the ratios of the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--links", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    figures: dict[str, list[tuple[float, float, float]]] = {"bare": [], "intake": []}
    for _ in range(options.rounds):
        for name, make in (("bare", bare), ("intake", intake)):
            most, half, p99 = measure_intake(make, options)
            figures[name].append((most, half, p99))
            percentiles = f"at {options.rate:g}/s: p50 {half:.1f} ms, p99 {p99:.1f} ms"
            print(f"{name:7} {most:7.0f} requests/s; {percentiles}")
    middle = {n: [*map(median, zip(*rows, strict=True))] for n, rows in figures.items()}
    ratios = [mine / theirs for mine, theirs in zip(middle["intake"], middle["bare"], strict=True)]
    print(f"intake / bare: requests {ratios[0]:.2f}, p50 {ratios[1]:.2f}, p99 {ratios[2]:.2f}")


if __name__ == "__main__":
    main()
