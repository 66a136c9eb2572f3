from __future__ import annotations

import pytest

from vizpub.analytics.comparison.estimates import Estimate
from vizpub.experiments.formatting import duration_text, estimate_text, number_text, size_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (18629.0, "18,629"),
        (22.3637, "22.36"),
        (0.02688, "0.02688"),
        (12345.6, "12,346"),
        (None, "–"),
        (0.0, "0"),
    ],
)
def test_numbers_are_rounded_for_people(value: float | None, text: str) -> None:
    assert number_text(value) == text


def test_estimates_have_as_many_digits_as_their_interval_supports() -> None:
    assert estimate_text(Estimate(22.3637, 21.05, 23.68, 5)) == "22.4 ± 1.3"
    assert estimate_text(Estimate(2, 1.5, 3.5, 5)) == "2.0 [1.5, 3.5]"
    assert estimate_text(Estimate(63.0, 63.0, 63.0, 5)) == "63"
    assert estimate_text(Estimate(22.3637, n=1)) == "22.36"
    assert estimate_text(Estimate(None)) == "–"


def test_sizes_and_durations_have_units() -> None:
    assert [size_text(n) for n in (12, 2_220_000, 5_000_000_000_000)] == [
        "12 B",
        "2.22 MB",
        "5e+03 GB",
    ]
    assert [duration_text(s) for s in (12.34, 210, 7560)] == ["12.3 s", "3.5 min", "2.1 h"]
    assert size_text(None) == duration_text(None) == "–"
