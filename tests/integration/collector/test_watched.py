"""`vizpub live watch` beside a collector that is killed, goes on, pauses and ends its run."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.integration.collector.test_batches import START, reports_of
from tests.support.collected import PATIENCE_S, QUICK, Collecting, running
from tests.support.watching import watching
from vizpub.reports.client import Reporter

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


@pytest.mark.long
def test_watch_goes_on_through_a_kill_and_ends_with_the_run(tmp_path: Path) -> None:
    """The run is ended while no collector runs; the new one listens somewhere else."""
    seed = 41
    print("seed", seed)
    told = reports_of(seed, 3)
    with running(Collecting(tmp_path)) as case:
        case.answering()
        with watching(workspace=tmp_path) as shown:
            for number, records in enumerate(told):
                with Reporter(case.url, pace=QUICK) as reporter:
                    for record in records:
                        reporter.line(json.dumps(record).encode())
                    assert reporter.flush(PATIENCE_S)
                shown.until(f"\n{START + number}\t")
                if number == 0:
                    case.end(signal.SIGKILL)
                    shown.until("waiting for the collector")
                    case.port += 1
                    case.start()
                    shown.until("the collector is back")
            assert case.end(signal.SIGTERM) == 0
            case.stop()
            assert shown.process.wait(PATIENCE_S) == 0
            shown.until("run 'lab' has ended")
    shown_rows = [line.split("\t")[0] for line in shown.text.splitlines() if "\t" in line]
    assert shown_rows == ["interval", *(str(START + number) for number in range(3))]
