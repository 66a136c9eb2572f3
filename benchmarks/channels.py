"""The channel simulator without reports, beside simpy on the same model.

    python -m benchmarks.channels [--updates 1e6] [--simpy 1e4] [--python .bench/env/bin/python]

Prints processor seconds of a run with 100 channels and 1,000 clients at 5 channels each, of each
mapping but perfect-c, and the time of an update as a multiple of ours in simpy, whose counts must
be equal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from vizpub.simulators.channels.layout import ChannelLayout, Updates
from vizpub.simulators.channels.liftoff import analyze_mapping
from vizpub.simulators.channels.parameters import MAPPINGS, ChannelParameters
from vizpub.simulators.channels.running import ChannelMeasurement, run

HERE = Path(__file__).parent
CLIENTS = 1_000
LOAD = 0.8
"""Of the busiest channel of the static mapping."""


def layout(mapping: str, items: int) -> ChannelLayout:
    """100 channels; each client wants ten pages."""
    parameters = ChannelParameters(
        channels=100, listen=5, items=items, mapping=mapping, assignment="random",
        profile="zipf:10",
    )  # fmt: skip
    return ChannelLayout(parameters, CLIENTS, 1)


def measured(given: ChannelLayout, updates: Updates) -> tuple[ChannelMeasurement, float]:
    """What came of a run, and the processor seconds that it took."""
    for part in ("wants", "channels_of", "carried", "reach", "transmission"):
        getattr(given, part)  # drawn before the clock runs
    begun = time.process_time()
    found = run(given, updates)
    return found, time.process_time() - begun


def beside_simpy(given: ChannelLayout, updates: Updates, python: Path) -> float:
    """Processor seconds of simpy. Raises: AssertionError where its counts differ from ours."""
    count = len(updates.times)
    assert given.carried is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input.npz"
        np.savez(
            file, times=updates.times, pages=updates.pages, wants=given.wants,
            listens=given.listens, took=given.transmission, carried=given.carried,
        )  # fmt: skip
        command = [str(python), str(HERE / "others/by_simpy.py"), str(file), str(count)]
        told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    ours = run(given, updates)
    counts = {
        "sent": ours.counts.sent.sum(), "heard": ours.counts.heard.sum(),
        "stale": ours.counts.stale.sum(), "receptions": ours.totals["receptions"],
    }  # fmt: skip
    for name, value in counts.items():
        assert int(value) == told[name], (name, int(value), told[name])
    return float(told["seconds"])


def main() -> None:
    """Measure every mapping, and simpy on the static one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=float, default=1e6)
    parser.add_argument("--simpy", type=float, default=1e4)
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--python", type=Path, default=Path(".bench/env/bin/python"))
    chosen = parser.parse_args()
    static = layout("offline-c", chosen.items)
    gap = max(channel.breaking_gap_us for channel in analyze_mapping(static)) / LOAD
    updates = static.draw_updates(int(chosen.updates), gap)
    run(static, static.draw_updates(1_000, gap))  # loads compiled code
    print(f"{len(updates.times):,} updates of {static.database.pages} pages, {CLIENTS:,} clients")
    of_static = 0.0
    for mapping in MAPPINGS[:-1]:  # smallest covers of a hundred channels take too long to find
        found, seconds = measured(layout(mapping, chosen.items), updates)
        sent, received = int(found.counts.sent.sum()), found.totals["receptions"]
        print(f"{mapping}: {seconds:.1f} s, {sent:,} transmissions, {received:,} receptions")
        of_static = seconds if mapping == "offline-c" else of_static
    few = static.draw_updates(int(chosen.simpy), gap)
    theirs = beside_simpy(static, few, chosen.python) / len(few.times)
    print(
        f"an update in simpy takes {theirs / (of_static / len(updates.times)):,.0f} times as long"
    )


if __name__ == "__main__":
    main()
