"""Ticks, intervals and times against their definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.words import naming
from vizpub.model.clock import NO_BEGINNING, OPEN, TOO_LONG, Clock, duration, parse_duration_us
from vizpub.model.errors import OutOfRange, UseError

EVENTS = Clock(ticks_per_interval=1_000_000, tick_us=1, first=0, last=119)
REPORTS = Clock(ticks_per_interval=1, tick_us=None, first=3, last=9)


@st.composite
def clocks(draw: st.DrawFn) -> Clock:
    first = draw(st.integers(0, 5))
    return Clock(draw(st.integers(1, 7)), 1, first, first + draw(st.integers(0, 6)))


@given(clocks(), st.integers(0, 80), st.integers(1, 40) | st.just(None))
def test_span_is_sampled_if_alive_at_the_sampling_tick(
    clock: Clock, valid_from: int, length: int | None
) -> None:
    valid_to = OPEN if length is None else valid_from + length
    alive = [
        interval
        for interval in range(clock.first, clock.last + 1)
        if valid_from <= clock.sampling_tick(interval) < valid_to
    ]
    assert list(clock.sampled(valid_from, valid_to)) == alive


@given(clocks(), st.integers(0, 20))
def test_interval_is_sampled_at_its_last_tick(clock: Clock, interval: int) -> None:
    tick = clock.sampling_tick(interval)
    assert clock.interval_of(tick) == interval
    assert clock.interval_of(tick + 1) == interval + 1


@given(clocks(), st.integers(-2, 15) | st.none(), st.integers(-2, 15) | st.none())
def test_window_is_clipped_to_the_intervals_of_the_run(
    clock: Clock, low: int | None, high: int | None
) -> None:
    inside = [
        interval
        for interval in range(clock.first, clock.last + 1)
        if (low is None or low <= interval) and (high is None or interval <= high)
    ]
    first, last = clock.clip(low, high)
    assert list(range(first, last + 1)) == inside


def test_interval_length_and_count_follow_the_clock() -> None:
    assert EVENTS.interval_us == 1_000_000
    assert REPORTS.interval_us is None
    assert (EVENTS.intervals, REPORTS.intervals) == (120, 7)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1us", 1),
        ("7µs", 7),
        ("250ms", 250_000),
        ("1s", 1_000_000),
        (" 1.5 m ", 90_000_000),
        ("2h", 7_200_000_000),
        ("1d", 86_400_000_000),
        ("0.000001s", 1),
    ],
)
def test_duration_is_parsed_to_microseconds(text: str, microseconds: int) -> None:
    assert parse_duration_us(text) == microseconds


@pytest.mark.parametrize("text", ["1us", "250ms", "90s", "2m", "3h", "2d", "1001us"])
def test_duration_is_written_as_it_is_parsed(text: str) -> None:
    assert duration(parse_duration_us(text)) == text


@pytest.mark.parametrize("text", ["", "1", "s", "-1s", "1 day", "1e3s", "0s", "0.1us", "1s1s"])
def test_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UseError):
        parse_duration_us(text)


def test_duration_that_no_column_holds_is_an_error() -> None:
    assert parse_duration_us("2562047788h") < 2**63
    with pytest.raises(UseError, match=TOO_LONG):
        parse_duration_us("2562047789h")


@pytest.mark.parametrize(
    ("clock", "text", "tick"),
    [
        (EVENTS, "0", 999_999),
        (EVENTS, "first", 999_999),
        (EVENTS, "119", 119_999_999),
        (EVENTS, " last ", 119_999_999),
        (EVENTS, "12.5s", 12_500_000),
        (EVENTS, "0s", 0),
        (EVENTS, "0.1us", 0),
        (EVENTS, "119999999us", 119_999_999),
        (REPORTS, "3", 3),
        (REPORTS, "last", 9),
    ],
)
def test_time_is_parsed_to_its_tick(clock: Clock, text: str, tick: int) -> None:
    assert clock.parse_at(text) == tick


@pytest.mark.parametrize(
    ("clock", "text"), [(EVENTS, "120"), (EVENTS, "120s"), (REPORTS, "2"), (REPORTS, "10")]
)
def test_time_outside_the_run_is_refused_with_the_range(clock: Clock, text: str) -> None:
    with pytest.raises(OutOfRange, match=f"intervals {clock.first} to {clock.last}"):
        clock.parse_at(text)


def test_time_without_a_known_interval_length_is_refused() -> None:
    with pytest.raises(UseError, match=naming("(3 to 9)")):
        REPORTS.parse_at("5s")


@pytest.mark.parametrize("clock", [EVENTS, REPORTS])
@pytest.mark.parametrize("text", ["", "now", "-1", "1.5", "0x10", "9" * 5000, "9" * 400 + "s"])
def test_invalid_time_is_refused_with_the_accepted_forms(clock: Clock, text: str) -> None:
    words = rf"not a time; give an interval number \({clock.first} to {clock.last}\), first, last, "
    with pytest.raises(UseError, match=words + r"or a time since the start such as 12\.5s"):
        clock.parse_at(text)


@given(clocks(), st.integers(-5, 100))
def test_tick_is_accepted_within_the_run_and_refused_outside(clock: Clock, tick: int) -> None:
    last = clock.sampling_tick(clock.last)
    if clock.first * clock.ticks_per_interval <= tick <= last:
        assert clock.check_tick(tick) == tick
    else:
        with pytest.raises(OutOfRange):
            clock.check_tick(tick)


def test_tick_description_names_interval_and_time() -> None:
    assert EVENTS.describe(12_500_000) == "interval 12 (12.5 s)"
    assert REPORTS.describe(4) == "interval 4"
    assert REPORTS.describe(OPEN) == "open"
    assert EVENTS.describe_range() == "intervals 0 to 119 (1 s each)"


EPOCH = "2000-01-01T23:59:50Z"


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("2000-01-01T23:59:52Z", "2s"),
        ("2000-01-02T01:00:00.25+01:00", "10.25s"),
        ("2000-01-02T00:00:01", "11s"),
        ("23:59:59.5", "9.5s"),
        ("23:59:59Z", "9s"),
        ("23:59", None),
        ("00:00:01", None),
        ("2000-01-02T00:01:00Z", None),
    ],
)
def test_wall_clock_time_is_counted_from_the_epoch(text: str, since: str | None) -> None:
    """A time without a date is on the day of the epoch; before it there is no answer."""
    clock = Clock(1_000_000, 1, 0, 19)
    if since:
        assert clock.parse_at(text, EPOCH) == clock.parse_at(since)
    else:
        with pytest.raises(OutOfRange, match="intervals 0 to 19"):
            clock.parse_at(text, EPOCH)


@pytest.mark.parametrize(
    "text",
    ["02:40:30", "02:40:30+02:00", "00:40:30Z", "2026-10-25T02:40:30", "2026-10-25T00:40:30+00:00"],
)
def test_time_without_an_offset_has_that_of_the_epoch(text: str) -> None:
    """Also on the night on which clocks are put back: an epoch has one offset."""
    clock = Clock(1, 60_000_000, 0, 19)
    assert clock.parse_at(text, "2026-10-25T02:30:00+02:00") == clock.parse_at("10")


@pytest.mark.parametrize(
    ("text", "epoch", "why"),
    [
        ("23:59:52", None, NO_BEGINNING),
        ("2000-13-01T00:00:00Z", EPOCH, "2000-01-01T23:59:50Z"),
        ("25:00", EPOCH, "2000-01-01T23:59:50Z"),
        ("2000-01-02", EPOCH, "first, last, .* 2000-01-01T23:59:50Z"),
    ],
)
def test_wall_clock_time_that_is_none_is_refused(text: str, epoch: str | None, why: str) -> None:
    with pytest.raises(UseError, match=why):
        Clock(1_000_000, 1, 0, 19).parse_at(text, epoch)
