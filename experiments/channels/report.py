"""The report of the experiment: every combination, and what the paper says in words, judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from vizpub.analytics.comparison.estimates import Estimate, mean
from vizpub.analytics.figures import save
from vizpub.experiments.channels import TITLE
from vizpub.experiments.channels.curves import ABOVE, BELOW, CurvePoint, draw_curves
from vizpub.experiments.channels.measuring import (
    ASSIGNMENTS,
    PROFILES,
    SCHEDULERS,
    CaseResult,
    list_cases,
)
from vizpub.experiments.formatting import duration_text, estimate_text, markdown_table
from vizpub.machine.files import replacing
from vizpub.simulators.channels.liftoff import THRESHOLD
from vizpub.simulators.channels.parameters import MAPPINGS, READINGS

_ABOUT = """
100 clients listen to 3 of 8 channels each and want 10 of 100 pages: any (uniform), or around 2 of 5
hot spots by Zipf's law (clustered). Updates are of the 5 sources alike, within one by Zipf's law. A
page takes 10 ms. UTAL is the mean gap of updates at which the channels begin to overload
(more than 0.005 copies left over per time of a transmission); staleness, fluff and copies (channels
per update) are those with an update every 10 ms; busy staleness is that of all first receptions at
95 % of the rate of the UTAL. Intervals are of 95 %, over the seeds.
"""
_MEASURES = ("utal_ms", "staleness_ms", "busy_staleness_ms", "fluff", "copies", "uneven")
_ENOUGH = 100_000
"""Updates of a run that tells an overload of 2 %."""
_SEARCH_S = {"small": 0.5, "full": 3.5}
"""Processor time of a search with its runs and curves, measured."""
_STEEP = 10
"""Times the threshold that is left over beyond it."""
Chosen = dict[str, str]


@dataclass(frozen=True)
class ChannelClaim:
    """A claim of the paper's text, and our result."""

    what: str
    source: str
    ours: str
    outcome: str


def describe(scale: str) -> Iterator[str]:
    """Yield the lines that `vizpub experiment show` prints."""
    cases = list_cases(scale)
    yield from (TITLE, "", *_ABOUT.strip().splitlines(), "")
    processor_time = duration_text(round(_SEARCH_S[scale] * len(cases), -2))
    yield "source: Bose, The Pub-Sub Simulator, 1999"
    yield f"runs: {len(cases)} searches; about {processor_time} of processor time, 1 MB kept"
    yield from ("our reading of the paper, which lacks pages:", *(f"  {t}" for t in _readings()))


def _readings() -> list[str]:
    return [text for name, text in READINGS.items() if name not in ("drop", "poisson")]


def values_by_seed(
    rows: Sequence[CaseResult], measure: str, **chosen: str
) -> dict[int, list[float]]:
    """By seed: a measure of all rows with these parts of their case, in the order of the rest."""
    values: dict[int, list[float]] = {}
    for row in rows:
        value = getattr(row, measure)
        if value is not None and all(_of_case(row, k) == v for k, v in chosen.items()):
            values.setdefault(row.case.seed, []).append(float(value))
    return values


def _of_case(row: CaseResult, part: str) -> str:
    return row.scheduler if part == "scheduler" else str(getattr(row.case, part))


def ratio(
    rows: Sequence[CaseResult], measure: str, numerator: Chosen, denominator: Chosen
) -> Estimate:
    """One part over the other, case by case of what else is the same; the mean of each seed."""
    first, second = (
        values_by_seed(rows, measure, **numerator),
        values_by_seed(rows, measure, **denominator),
    )
    ratios_by_seed = [
        [a / b for a, b in zip(first[seed], second[seed], strict=True)]
        for seed in sorted(first.keys() & second.keys())
    ]
    return mean([sum(ratios) / len(ratios) for ratios in ratios_by_seed])


def judge_claims(rows: Sequence[CaseResult], points: Sequence[CurvePoint]) -> list[ChannelClaim]:
    """Judge the statements of the paper by our runs."""
    clustered, uniform = {"profile": "clustered"}, {"profile": "uniform"}
    lc, random = {"assignment": "lc"}, {"assignment": "random"}
    claims = [
        _judge_less("Similar clients together receive less fluff: lc / random, clustered", "4.1",
               ratio(rows, "fluff", lc | clustered, random | clustered)),
        _judge_less("… and need fewer channels for an update: c with lc / random, clustered",
               "4.1", ratio(rows, "copies", lc | clustered | {"mapping": "c"},
                     random | clustered | {"mapping": "c"})),
        _judge_profiles(rows, uniform, clustered),
        _judge_less("An efficient mapper loads the channels less than the benchmark: "
               "copies, c / random", "5.1, 5.2.1",
               ratio(rows, "copies", {"mapping": "c"}, {"mapping": "random"})),
        _judge_less("… so it lifts off at a smaller gap: UTAL, c / random", "5.1",
               ratio(rows, "utal_ms", {"mapping": "c"}, {"mapping": "random"})),
        _judge_less("The least covers are not larger than greedy ones: "
               "copies, perfect-c / offline-c", "5.1",
               ratio(rows, "copies", {"mapping": "perfect-c"}, {"mapping": "offline-c"}),
               1 + 1e-9),
        _judge_less("Algorithms that look at page probabilities even the load: uneven, "
               "pc / random, clustered", "4.1",
               ratio(rows, "uneven", {"assignment": "pc"} | clustered, random | clustered)),
        _judge_less("RxW serves what many want first: busy staleness, rxw / fifo", "A.6; expected",
               ratio(rows, "busy_staleness_ms", {"scheduler": "rxw"}, {"scheduler": "fifo"}),
               1 + 1e-9),
    ]  # fmt: skip
    return [*claims, _judge_liftoff(points), _judge_prediction(rows)]


def _judge_profiles(rows: Sequence[CaseResult], uniform: Chosen, clustered: Chosen) -> ChannelClaim:
    lc, random = {"assignment": "lc"}, {"assignment": "random"}
    even, odd = (
        ratio(rows, "utal_ms", random | profile, lc | profile) for profile in (uniform, clustered)
    )
    ours = f"UTAL, random / lc: {estimate_text(even)} uniform, {estimate_text(odd)} clustered"
    text = "Random does especially well when profiles are alike (uniform, beside clustered)"
    if even.value is None or odd.value is None:
        return ChannelClaim(text, "4.2.1", ours, "unknown")
    return ChannelClaim(text, "4.2.1", ours, "met" if even.value < odd.value else "not met")


def _judge_less(text: str, source: str, estimate: Estimate, bound: float = 1.0) -> ChannelClaim:
    if estimate.value is None:
        return ChannelClaim(text, source, "–", "unknown")
    return ChannelClaim(
        text, source, estimate_text(estimate), "met" if estimate.value < bound else "not met"
    )


def _judge_liftoff(points: Sequence[CurvePoint]) -> ChannelClaim:
    text = f"GDFR is flat, then lifts off: at {BELOW:g} and {ABOVE:g} of the rate, in every curve"
    calm, busy = ([p.overload for p in points if p.share == share] for share in (BELOW, ABOVE))
    if not points:
        return ChannelClaim(text, "A.1", "–", "unknown")
    ours = (
        f"at most {max(calm):.2g} and at least {min(busy):.2g} copies left over per transmission, "
        f"in {len(calm)} curves"
    )
    met = max(calm) <= THRESHOLD and min(busy) >= _STEEP * THRESHOLD
    return ChannelClaim(text, "A.1", ours, "met" if met else "not met")


def _judge_prediction(rows: Sequence[CaseResult]) -> ChannelClaim:
    deviations = [
        row.utal_ms / row.predicted_ms - 1 for row in rows if row.utal_ms and row.predicted_ms
    ]
    text = "UTAL of static mappings is the largest TotalP times a transmission, ± 2 %"
    if not deviations:
        return ChannelClaim(text, "A.5", "–", "unknown")
    average = mean(deviations).value or 0.0
    extremes = f"{min(deviations):+.2%} to {max(deviations):+.2%}"
    ours = f"{average:+.2%} on average, {extremes} in single runs"
    if min(row.case.updates for row in rows) < _ENOUGH:
        short = "; in runs this short, copies that only wait at the end count as overload"
        return ChannelClaim(text, "A.5", ours + short, "unknown")
    return ChannelClaim(text, "A.5", ours, "met" if abs(average) <= 0.02 else "not met")


def write_report(
    rows: Sequence[CaseResult], points: Sequence[CurvePoint], scale: str, out: Path
) -> tuple[Path, str]:
    """Write report.md, figures/, values.csv, gdfr.csv and claims.csv; returns the path, and how
    much is met.
    """
    claims = judge_claims(rows, points)
    pa.csv.write_csv(_flatten(rows), out / "values.csv")
    pa.csv.write_csv(_flatten(points), out / "gdfr.csv")
    pa.csv.write_csv(pa.Table.from_pylist([asdict(claim) for claim in claims]), out / "claims.csv")
    met = sum(claim.outcome == "met" for claim in claims)
    summary = f"{met} of {len(claims)} claims met"
    claim_rows = [(claim.what, claim.source, claim.ours, claim.outcome) for claim in claims]
    text = [
        f"# {TITLE}", "", *_ABOUT.strip().splitlines(), "", f"Scale {scale}: {summary}.", "",
        "Our reading of the paper, which lacks pages:", "",
        *(f"- {reading}" for reading in _readings()), "",
        "## What the paper says", "",
        *markdown_table(("claim", "source", "ours", "outcome"), claim_rows), "",
    ]  # fmt: skip
    for profile in PROFILES:
        text += _figure_lines(points, profile, out / "figures")
        for scheduler in SCHEDULERS:
            text += _table_lines(rows, profile, scheduler)
    with replacing(out / "report.md") as new:
        new.write_text("\n".join(text) + "\n", "utf-8")
    return out / "report.md", summary


def _flatten(results: Sequence[CaseResult] | Sequence[CurvePoint]) -> pa.Table:
    """A column for each field, those of the case first."""
    rows = [asdict(result) for result in results]
    return pa.Table.from_pylist([{**row.pop("case"), **row} for row in rows])


def _figure_lines(points: Sequence[CurvePoint], profile: str, folder: Path) -> Iterator[str]:
    folder.mkdir(exist_ok=True)
    figure, name = draw_curves(points, profile), f"gdfr-{profile}"
    for form in ("png", "svg"):
        save(figure, folder / f"{name}.{form}", form)
    caption = (
        f"GDFR over the update rate, profiles {profile}, seed 1: flat, then it lifts off; a mark "
        "is where the search found the UTAL."
    )
    yield from (f"## {caption.partition(',')[0]}, profiles {profile}", "")
    yield from (f"![{caption}](figures/{name}.png)", "", f"{caption} (gdfr.csv)", "")


def _table_lines(rows: Sequence[CaseResult], profile: str, scheduler: str) -> Iterator[str]:
    yield from (f"## Profiles {profile}, scheduler {scheduler}", "")
    lines = [
        (assignment, mapping, *map(_of(rows, profile, scheduler, assignment, mapping), _MEASURES))
        for assignment in ASSIGNMENTS
        for mapping in MAPPINGS
    ]
    yield from (*markdown_table(("assignment", "mapping", *_MEASURES), lines), "")


def _of(rows: Sequence[CaseResult], *case: str) -> Callable[[str], str]:
    names = ("profile", "scheduler", "assignment", "mapping")
    chosen = dict(zip(names, case, strict=True))
    return lambda measure: estimate_text(
        mean(
            [
                value
                for of_seed in values_by_seed(rows, measure, **chosen).values()
                for value in of_seed
            ]
        )
    )
