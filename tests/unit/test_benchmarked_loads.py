"""What a load took, from the steps that were measured, and how the page shows it."""

from __future__ import annotations

from benchmarks.loading import took
from benchmarks.page import page
from benchmarks.watched import Json

MACHINE = {"processors": 2, "processor": "?", "memory_gb": 1, "system": "?", "python": "3"}
TOLD: Json = {
    "steps": {
        f"{way}: {step}": {"times": 1, "mean": seconds, "cpu_mean": 2 * seconds}
        for way, steps in {
            "bolt": {"load links": 60, "load hops": 30, "index": 5, "verify": 5},
            "bulk": {"write links": 5, "import": 10, "index": 5, "verify": 5},
        }.items()
        for step, seconds in steps.items()
    },
    "facts": {"links": 600, "receptions": 300, "relationships": {"False": 900, "True": 900}},
}


def test_load_time_is_told_with_and_without_common_steps() -> None:
    assert took(TOLD, "bolt", "mean") == 100
    assert took(TOLD, "bolt", "mean", entering=True) == 90
    assert took(TOLD, "bulk", "cpu_mean") == 50


def test_page_shows_the_rates_of_transactions_and_import() -> None:
    about = {"date": "today", "load": [0, 0], "machine": MACHINE}
    text = page({"S": {"loading": {**about, **TOLD}}})
    assert "| transactions (`--no-bulk`) | 90 | 20 | 1× | 100 | 200 |" in text
    assert "| import (`--bulk`) | 15 | 120 | 6× | 25 | 50 |" in text
