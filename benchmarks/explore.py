"""Measures the explorer in Chromium: `python -m benchmarks.explore`.

    first picture   from the call of `vizpub explore` on a run to its picture
    step            script of the page per step of an interval, colour and size following a metric
    bytes           of the answers, as they are and packed by gzip
    memory          of the page, and of the server while ten clients ask it

Without a graphics card Chromium paints in software, which takes longer than all else. So the pages
whose steps are measured do not paint; only the first picture is painted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks import results
from benchmarks.page import EXPLORED, EXPLORER, write_page
from vizpub.model.clock import OPEN, Clock
from vizpub.model.tables import table
from vizpub.runstore.integrity import stored_schema
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.writer import RunWriter, writing

INTERVALS = 100
CLIENTS, REQUESTS = 10, 2_000
_ASKED = (
    "",
    "/overlay",
    "/column?name=betweenness&block=0",
    "/curve?name=links",
    "/peer?peer=17&tick=50",
    "/peer/curves?peer=3&name=degree",
    "/places/circle",
    "/path?from=1&to=2&tick=40",
    "/rows?table=links&interval=20",
    "/extent?name=degree",
)
"""What clients ask in turn."""
_STEPS = 20
_READY = "() => globalThis.explorer"
_UNPAINTED = """
for (const name of ["drawArrays", "drawElements", "drawArraysInstanced", "drawElementsInstanced"]) {
  WebGL2RenderingContext.prototype[name] = () => {};
}
"""
"""Paints nothing."""
_STEP = """(steps) => new Promise((done) => {
  let t = 0;
  const step = () => {
    if (++t > steps) return done();
    explorer.update({ t }, { push: false });
    requestAnimationFrame(() => requestAnimationFrame(step));
  };
  requestAnimationFrame(step);
})"""
"""Two frames: the first one may have been due already. Chromium counts the script of callbacks; it
leaves out what follows an await.
"""
_METRICS = "colour=betweenness&size=degree"
_SHOWN = {
    "": _METRICS,
    ", of degrees from 3 on": f"{_METRICS}&least=3",
    ", of a peer's component": f"{_METRICS}&sel=17&component=1",
    ", colour by hops from a peer": "colour=hops+from+selected&size=degree&sel=17",
}
"""What is shown, by the words for it."""


def make(workspace: Path, name: str, peers: int, links: int) -> None:
    """A run of random links, each there for a random stretch of the intervals."""
    rng = np.random.default_rng(peers)
    begin = rng.integers(0, INTERVALS - 1, links)
    each = np.arange(peers, dtype=np.int32)
    of_peers: dict[str, Any] = {
        "peer": np.tile(each, INTERVALS),
        "interval": np.repeat(np.arange(INTERVALS, dtype=np.int32), peers),
        "degree": rng.integers(0, 40, peers * INTERVALS).astype(np.int32),
        "betweenness": rng.exponential(100, peers * INTERVALS),
    }
    columns: dict[str, dict[str, Any]] = {
        "peers": {
            "peer": each,
            "name": [f"peer-{number}" for number in range(peers)],
            "is_reporter": [True] * peers,
        },
        "presence": {"peer": each, "valid_from": [0] * peers, "valid_to": [OPEN] * peers},
        "links": {
            "src": rng.integers(0, peers, links),
            "dst": rng.integers(0, peers, links),
            "layer": ["overlay"] * links,
            "valid_from": begin,
            "valid_to": begin + rng.integers(1, INTERVALS, links),
        },
        "metrics/peers": of_peers,
        "metrics/overlay": {"interval": np.arange(INTERVALS), "links": [links] * INTERVALS},
    }
    clock = Clock(1, 1_000_000, 0, INTERVALS - 1)
    manifest = Manifest(name, "edges", (), {"layers": None}, clock=clock)
    with writing(workspace, name) as writer:
        writer.begin(manifest)
        entries = {of: _write_table(writer, of, values) for of, values in columns.items()}
        writer.commit(manifest.with_stage("all", entries, state="complete"))


def _write_table(writer: RunWriter, name: str, values: dict[str, Any]) -> Any:
    schema = table(name).arrow
    rows = len(next(iter(values.values())))
    arrays = [
        pa.array(values[f.name], f.type) if f.name in values else pa.nulls(rows, f.type)
        for f in schema
    ]
    directory = writer.fresh_directory(name)
    directory.mkdir(parents=True)
    stored = pa.Table.from_arrays(arrays, schema=schema).cast(stored_schema(schema))
    pq.write_table(stored, directory / "part-0.parquet", write_page_checksum=True)
    return writer.entry(directory)


@contextmanager
def serve(workspace: Path, run: str) -> Iterator[tuple[str, int]]:
    """The address that `vizpub explore` prints, and its process, while it serves."""
    command = [sys.executable, "-m", "vizpub.cli", "--workspace", str(workspace), "explore", run]
    with subprocess.Popen([*command, "--no-open"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def first_picture(browser: Browser, workspace: Path, run: str) -> tuple[float, float]:
    """Seconds to the picture: from the call of the command, and in a server that runs."""
    began = time.monotonic()
    with serve(workspace, run) as (address, _):
        _open_page(browser, address).close()
        from_call = time.monotonic() - began
        began = time.monotonic()
        _open_page(browser, address).close()
        return from_call, time.monotonic() - began


def _open_page(browser: Browser, address: str, *, painted: bool = True) -> Page:
    page = browser.new_page(viewport={"width": 800, "height": 420})
    page.set_default_timeout(300_000)
    if not painted:
        page.add_init_script(_UNPAINTED)
    page.goto(address)
    page.wait_for_function(_READY)
    page.evaluate("() => explorer.ready")
    return page


def measure_steps(browser: Browser, address: str, shown: str) -> dict[str, float]:
    """Processor milliseconds of script for a step in which colours and sizes change, and the memory
    of the page then.
    """
    page = _open_page(browser, f"{address}?t=0&layout=circle&{shown}", painted=False)
    page.wait_for_selector("figure[data-of=degree]")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.evaluate(_STEP, 3)  # the browser compiles what is called often
    began = _script_seconds(session)
    page.evaluate(_STEP, _STEPS)
    seconds = _script_seconds(session) - began
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")
    page.close()
    return {
        "step_ms": 1000 * seconds / _STEPS,
        "page_mb": (heap["usedSize"] + heap["backingStorageSize"]) / 1e6,
    }


def _script_seconds(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    (seconds,) = (one["value"] for one in metrics if one["name"] == "ScriptDuration")
    return float(seconds)


def answer_sizes(root: str) -> dict[str, tuple[int, int]]:
    """The bytes of some answers, as they are and packed."""
    found = {}
    column = "/column?name=betweenness&block="
    blocks = -(-INTERVALS // json.loads(_ask(root))["block"])
    paths = {
        "facts": [""],
        "overlay": ["/overlay"],
        "column": [f"{column}{block}" for block in range(blocks)],
        "places": ["/places/circle"],
    }
    for name, parts in paths.items():
        contents = [_ask(root + part) for part in parts]
        packed = [gzip.compress(content, 6) for content in contents]
        found[name] = (sum(map(len, contents)), sum(map(len, packed)))
    return found


def _ask(address: str) -> bytes:
    with urlopen(address) as answer:
        content: bytes = answer.read()
    return content


def measure_server(root: str, server: int) -> dict[str, float]:
    """MB (proportional set size) of a server after each fifth of the requests of some clients
    that ask at once.
    """
    paths = cycle(root + path for path in _ASKED)
    found: dict[str, float] = {}
    with ThreadPoolExecutor(CLIENTS) as clients:
        for asked in range(REQUESTS // 5, REQUESTS + 1, REQUESTS // 5):
            already = max((int(count) for count in found), default=0)
            list(clients.map(_ask, islice(paths, asked - already)))
            found[str(asked)] = _proportional_mb(server)
    return found


def _proportional_mb(process: int) -> float:
    text = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8")
    (kilobytes,) = re.findall(r"^Pss: +(\d+) kB", text, re.M)
    return int(kilobytes) / 1000


def measure(browser: Browser, demo: tuple[Path, str] | None) -> Iterator[tuple[str, Any]]:
    """The figures, by name."""
    if demo:
        pictures = [first_picture(browser, *demo) for _ in range(3)]
        yield "first_picture_s", [min(times) for times in zip(*pictures, strict=True)]
    for peers, links in EXPLORED:
        with TemporaryDirectory() as folder:
            make(Path(folder), "made", peers, links)
            with serve(Path(folder), "made") as (address, server):
                root = address.partition("#")[0] + "api/runs/made"
                yield f"{peers} bytes", answer_sizes(root)
                steps = {of: measure_steps(browser, address, shown) for of, shown in _SHOWN.items()}
                yield f"{peers} page", steps
                if peers == EXPLORED[0][0]:
                    yield "server_mb", measure_server(root, server)


def main() -> None:
    """Measure, keep the outcome, and write the page from all outcomes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explore", description=__doc__)
    parser.add_argument("--demo", nargs=2, metavar=("WORKSPACE", "RUN"), help="the demo's run")
    options = parser.parse_args()
    load, outcome = results.load(), {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--enable-unsafe-swiftshader"],
        )
        outcome["versions"] = {"Chromium": browser.version}
        demo = (Path(options.demo[0]), options.demo[1]) if options.demo else None
        for name, figures in measure(browser, demo):
            print(name, json.dumps(figures), flush=True)
            outcome[name] = figures
    results.keep(EXPLORER, "figures", outcome, load)
    write_page()


if __name__ == "__main__":
    main()
