"""Results of whole rings of tests: a line of JSON each in results.jsonl, to be committed.

`make test-long` and `make test-rings` call this. A line has the ring, the commit, the time of its
end (UTC), how many tests there were, the names of those that failed, the seconds, and PYTEST_ARGS.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.jsonl")
Line = dict[str, Any]
ENDS = {pytest.ExitCode(status) for status in (0, 1, 5)}
"""How a whole ring ends; 5 where all have passed before."""


def read_lines(path: Path) -> list[Line]:
    """The lines of a file; none if it does not exist."""
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def lines_like(which: Line) -> list[Line]:
    """The results that have these entries."""
    return [line for line in read_lines(RESULTS) if which.items() <= line.items()]


def add(line: Line) -> None:
    """Append a result, and print it."""
    text = json.dumps(line)
    print(text)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def identity(ring: str) -> Line:
    """What results of the same tests and code have in common."""
    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {
        "ring": ring,
        "commit": commit.strip(),
        "arguments": os.environ.get("PYTEST_ARGS", ""),
    }


def outcome(*ledgers: Path) -> Line | None:
    """The tests of ledgers (`--resume`), those that failed in the last run of each, and the seconds
    of all their runs; None if one did not come to its end.
    """
    runs = [
        [line for line in read_lines(ledger.with_suffix(".json")) if "tests" in line]
        for ledger in ledgers
    ]
    last = [lines[-1] for lines in runs if lines]
    if len(last) < len(runs) or any(line["status"] not in ENDS for line in last):
        return None
    return {
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "tests": sum(line["tests"] + line["passed before"] for line in last),
        "failed": sorted({test for line in last for test in line["failed"]}),
        "seconds": sum(line["seconds"] for lines in runs for line in lines),
    }


def add_long(ledger: Path) -> None:
    """Add the result of the long ring, unless it was stopped, or has passed as well before."""
    result = outcome(ledger, ledger.with_suffix(".container.txt"))
    lines = read_lines(ledger.with_suffix(".json"))
    wheels = {"wheels passed": [line["wheel"] for line in lines if "wheel" in line]}
    which = identity("long")
    if result and not lines_like(which | wheels | {"failed": []}):
        add(which | result | wheels)


def run_quick(count: int, command: list[str], goes_on: bool) -> int:
    """Run the quick ring in random orders until the commit has so many results; return the worst
    status. A ring that was stopped does not count, and is run again with its seed.
    """
    which, worst = identity("quick"), 0
    for number in range(len(lines_like(which)) + 1, count + 1):
        seed = int(which["commit"][:8], 16) + number
        ledger = ROOT / f".long/{which['commit']}.quick-{seed}.txt"
        for old in ledger.parent.glob(f"{ledger.stem}.*"):
            old.unlink()
        start = {
            "began": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": seed,
            "load": round(os.getloadavg()[0], 1),
        }
        order = ["--random-order", f"--random-order-seed={seed}"]
        status = subprocess.run([*command, f"--resume={ledger}", *order], check=False).returncode
        result = outcome(ledger)
        if status not in ENDS or result is None:
            return status or 1
        add(which | start | result)
        worst = max(worst, status)
        if status and not goes_on:
            break
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.results")
    rings = parser.add_subparsers(dest="ring", required=True)
    long = rings.add_parser("long", help="add what a ledger says")
    long.add_argument("ledger", type=Path)
    quick = rings.add_parser("quick", help="run the quick ring in random orders")
    quick.add_argument("count", type=int)
    quick.add_argument("--go-on", action="store_true", help="after a failure, too")
    quick.add_argument("command", nargs="+", help="after --: the ring")
    options = parser.parse_args()
    if options.ring == "quick":
        return run_quick(options.count, options.command, options.go_on)
    add_long(options.ledger)
    return 0


if __name__ == "__main__":
    sys.exit(main())
