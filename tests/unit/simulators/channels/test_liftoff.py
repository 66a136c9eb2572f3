"""The rate at which channels overload: what the paper prints, and what mappings predict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.channels import PRINTED, layout, printed_layout
from vizpub.model.errors import UseError
from vizpub.simulators.channels.liftoff import ON_THE_FLY, analyze_mapping, curve, liftoff, overload

UPDATES = 60_000


def test_printed_list_predicts_its_breaking_gaps(tmp_path: Path) -> None:
    found = analyze_mapping(printed_layout(tmp_path))
    assert [channel.total_p for channel in found] == pytest.approx(PRINTED)
    order = sorted(found, key=lambda channel: -channel.breaking_gap_us)
    assert [channel.channel for channel in order[:2]] == [0, 3]
    assert [c.breaking_gap_us / 1e6 for c in order[:2]] == pytest.approx([0.202219, 0.109922])


def test_law_whose_probabilities_are_all_zero_is_refused() -> None:
    """Of a Poisson law with this mean, the first 20 have less than the least double."""
    with pytest.raises(UseError, match="give a lower mean"):
        layout(pages="poisson:1000", items=20).probability  # noqa: B018


def test_printed_list_overloads_first_on_channel_0(tmp_path: Path) -> None:
    given = printed_layout(tmp_path)
    found = liftoff(given, UPDATES)
    assert found.gap_us is not None
    assert found.gap_us / 1e6 == pytest.approx(0.202219, rel=0.02)
    (late,) = curve(given, [0.19e6], UPDATES)
    left = late.counts.offered - late.counts.sent
    assert int(np.argmax(left)) == 0
    assert left[0] > 100 * left[1:].max()


@pytest.mark.parametrize(("gap", "broken"), [(0.115, {0}), (0.105, {0, 3})])
def test_printed_list_breaks_its_second_channel_at_its_gap(
    tmp_path: Path, gap: float, broken: set[int]
) -> None:
    (late,) = curve(printed_layout(tmp_path), [gap * 1e6], UPDATES)
    left = late.counts.offered - late.counts.sent
    per_second = left * 1e6 / late.duration
    assert {int(channel) for channel in np.flatnonzero(per_second > 0.01)} == broken


def test_printed_list_has_the_gdfr_of_its_overload(tmp_path: Path) -> None:
    given = printed_layout(tmp_path)
    late, calm = curve(given, [0.15e6, 0.25e6], 300_000)
    assert late.gdfr == pytest.approx(0.2022191 / 0.15 - 1, rel=0.02)
    assert late.gdfr == pytest.approx(0.348, rel=0.02)
    assert 0 <= (calm.gdfr or 0) < 1e-3


@pytest.mark.parametrize(
    ("assignment", "mapping"),
    [
        ("lc", "perfect-c"),
        *(
            pytest.param(assignment, mapping, marks=pytest.mark.long)
            for assignment in ("random", "rr", "pc", "lc")
            for mapping in ("offline-c", "perfect-c")
            if (assignment, mapping) != ("lc", "perfect-c")
        ),
    ],
)
def test_static_mappings_overload_where_their_busiest_channel_is_full(
    assignment: str, mapping: str
) -> None:
    given = layout(
        60, 3, assignment=assignment, mapping=mapping, pages="zipf:0.8", page_bytes_high=2048
    )
    found = liftoff(given, UPDATES)
    assert found.gap_us == pytest.approx(found.predicted_us, rel=0.02)
    assert found.at is not None
    assert overload(found.at) <= 0.005


def test_mapping_on_the_fly_has_no_pages_of_channels() -> None:
    with pytest.raises(UseError, match=ON_THE_FLY):
        analyze_mapping(layout(mapping="c"))


def test_channels_that_nobody_needs_never_overload(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("client,page\n")
    found = liftoff(layout(profile=f"file:{tmp_path / 'none.csv'}"), 1000)
    assert found.gap_us is None
