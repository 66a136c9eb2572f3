"""Measures the explorer in Chromium: `python -m benchmarks.explore`.

    first picture   from the call of `vizpub explore` on the demo's run to its picture
    step            script of the page per step of an interval, colour and size following a metric
    bytes           of the answers, as they are and packed by gzip

Without a graphics card Chromium paints in software, which takes longer than all else; a step counts
only what the page's script does.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser, Page, sync_playwright

from vizpub.model.clock import OPEN, Clock
from vizpub.model.sizes import format_size
from vizpub.model.tables import table
from vizpub.runstore.integrity import stored_schema
from vizpub.runstore.manifest import Manifest
from vizpub.runstore.writer import RunWriter, writing

INTERVALS = 100
_STEPS = 40
_READY = "() => globalThis.explorer"


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
def serve(workspace: Path, run: str) -> Iterator[str]:
    """The address that `vizpub explore` prints, while it serves."""
    command = [sys.executable, "-m", "vizpub.cli", "--workspace", str(workspace), "explore", run]
    with subprocess.Popen([*command, "--no-open"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def first_picture(browser: Browser, workspace: Path, run: str) -> tuple[float, float]:
    """Seconds to the picture: from the call of the command, and in a server that runs."""
    began = time.monotonic()
    with serve(workspace, run) as address:
        _open_page(browser, address).close()
        from_call = time.monotonic() - began
        began = time.monotonic()
        _open_page(browser, address).close()
        return from_call, time.monotonic() - began


def _open_page(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 800, "height": 420})
    page.set_default_timeout(300_000)
    page.goto(address)
    page.wait_for_function(_READY)
    page.evaluate("() => explorer.ready")
    return page


def steps(browser: Browser, address: str) -> list[float]:
    """Milliseconds of script for each of some steps, in which colours and sizes change."""
    page = _open_page(browser, address + "?t=0&colour=betweenness&size=degree&layout=circle")
    page.wait_for_selector("figure[data-of=degree]")
    milliseconds: list[float] = page.evaluate(
        """steps => {
          const took = [];
          for (let t = 1; t <= steps; t++) {
            const began = performance.now();
            explorer.update({ t }, { push: false });
            took.push(performance.now() - began);
          }
          return took;
        }""",
        _STEPS,
    )
    page.close()
    return milliseconds


def sizes(address: str, run: str) -> Iterator[tuple[str, int, int]]:
    """Each answer, its bytes, and those when packed."""
    root = address.partition("#")[0] + f"api/runs/{run}"
    for path in ("", "/overlay", "/column?name=betweenness&block=0", "/places/circle"):
        with urlopen(root + path) as answer:
            content = answer.read()
        yield path or "facts", len(content), len(gzip.compress(content, 6))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explore", description=__doc__)
    parser.add_argument("--demo", type=Path, help="a workspace with the run of the demo")
    parser.add_argument("--peers", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=100_000)
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--enable-unsafe-swiftshader"],
        )
        if options.demo:
            from_call, again = first_picture(browser, options.demo, "gossipsub")
            print(
                f"first picture of the demo: {from_call:.2f} s; in a server that runs {again:.2f} s"
            )
        workspace = Path(folder)
        make(workspace, "made", options.peers, options.links)
        with serve(workspace, "made") as address:
            for path, plain, packed in sizes(address, "made"):
                print(f"{path}: {format_size(plain)}, packed {format_size(packed)}")
            took = steps(browser, address)
        print(f"step: median {statistics.median(took):.2f} ms, longest {max(took):.2f} ms")


if __name__ == "__main__":
    main()
