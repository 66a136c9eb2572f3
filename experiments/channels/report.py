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
from vizpub.experiments.channels.curves import ABOVE, BELOW, Point, drawn
from vizpub.experiments.channels.measuring import ASSIGNMENTS, PROFILES, SCHEDULERS, Row, cases
from vizpub.experiments.formatting import duration, estimate_text, markdown
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
class Said:
    """Something that is said in words, and what ours are."""

    what: str
    source: str
    ours: str
    outcome: str


def described(scale: str) -> Iterator[str]:
    """What `vizpub experiment show` prints."""
    chosen = cases(scale)
    yield from (TITLE, "", *_ABOUT.strip().splitlines(), "")
    spent = duration(round(_SEARCH_S[scale] * len(chosen), -2))
    yield "source: Bose, The Pub-Sub Simulator, 1999"
    yield f"runs: {len(chosen)} searches; about {spent} of processor time, 1 MB kept"
    yield from ("our reading of the paper, which lacks pages:", *(f"  {t}" for t in _readings()))


def _readings() -> list[str]:
    return [text for name, text in READINGS.items() if name not in ("drop", "poisson")]


def values(rows: Sequence[Row], measure: str, **chosen: str) -> dict[int, list[float]]:
    """By seed: a measure of all rows with these parts of their case, in the order of the rest."""
    found: dict[int, list[float]] = {}
    for row in rows:
        value = getattr(row, measure)
        if value is not None and all(_of_case(row, k) == v for k, v in chosen.items()):
            found.setdefault(row.case.seed, []).append(float(value))
    return found


def _of_case(row: Row, part: str) -> str:
    return row.scheduler if part == "scheduler" else str(getattr(row.case, part))


def ratio(rows: Sequence[Row], measure: str, one: Chosen, other: Chosen) -> Estimate:
    """One part over the other, case by case of what else is the same; the mean of each seed."""
    first, second = values(rows, measure, **one), values(rows, measure, **other)
    of_seeds = [
        [a / b for a, b in zip(first[seed], second[seed], strict=True)]
        for seed in sorted(first.keys() & second.keys())
    ]
    return mean([sum(of_one) / len(of_one) for of_one in of_seeds])


def judged(rows: Sequence[Row], points: Sequence[Point]) -> list[Said]:
    """What the paper says, in our runs."""
    clustered, uniform = {"profile": "clustered"}, {"profile": "uniform"}
    lc, random = {"assignment": "lc"}, {"assignment": "random"}
    found = [
        _below("Similar clients together receive less fluff: lc / random, clustered", "4.1",
               ratio(rows, "fluff", lc | clustered, random | clustered)),
        _below("… and need fewer channels for an update: c with lc / random, clustered", "4.1",
               ratio(rows, "copies", lc | clustered | {"mapping": "c"},
                     random | clustered | {"mapping": "c"})),
        _alike(rows, uniform, clustered),
        _below("An efficient mapper loads the channels less than the benchmark: copies, c / random",
               "5.1, 5.2.1", ratio(rows, "copies", {"mapping": "c"}, {"mapping": "random"})),
        _below("… so it lifts off at a smaller gap: UTAL, c / random", "5.1",
               ratio(rows, "utal_ms", {"mapping": "c"}, {"mapping": "random"})),
        _below("The least covers are not larger than greedy ones: copies, perfect-c / offline-c",
               "5.1", ratio(rows, "copies", {"mapping": "perfect-c"}, {"mapping": "offline-c"}),
               1 + 1e-9),
        _below("Algorithms that look at page probabilities even the load: uneven, pc / random, "
               "clustered", "4.1", ratio(rows, "uneven", {"assignment": "pc"} | clustered,
                                         random | clustered)),
        _below("RxW serves what many want first: busy staleness, rxw / fifo", "A.6; expected",
               ratio(rows, "busy_staleness_ms", {"scheduler": "rxw"}, {"scheduler": "fifo"}),
               1 + 1e-9),
    ]  # fmt: skip
    return [*found, _lifted(points), _predicted(rows)]


def _alike(rows: Sequence[Row], uniform: Chosen, clustered: Chosen) -> Said:
    lc, random = {"assignment": "lc"}, {"assignment": "random"}
    even, odd = (
        ratio(rows, "utal_ms", random | profile, lc | profile) for profile in (uniform, clustered)
    )
    ours = f"UTAL, random / lc: {estimate_text(even)} uniform, {estimate_text(odd)} clustered"
    what = "Random does especially well when profiles are alike (uniform, beside clustered)"
    if even.value is None or odd.value is None:
        return Said(what, "4.2.1", ours, "unknown")
    return Said(what, "4.2.1", ours, "met" if even.value < odd.value else "not met")


def _below(what: str, source: str, found: Estimate, bound: float = 1.0) -> Said:
    if found.value is None:
        return Said(what, source, "–", "unknown")
    return Said(what, source, estimate_text(found), "met" if found.value < bound else "not met")


def _lifted(points: Sequence[Point]) -> Said:
    what = f"GDFR is flat, then lifts off: at {BELOW:g} and {ABOVE:g} of the rate, in every curve"
    calm, busy = ([p.overload for p in points if p.share == share] for share in (BELOW, ABOVE))
    if not points:
        return Said(what, "A.1", "–", "unknown")
    ours = (
        f"at most {max(calm):.2g} and at least {min(busy):.2g} copies left over per transmission, "
        f"in {len(calm)} curves"
    )
    met = max(calm) <= THRESHOLD and min(busy) >= _STEEP * THRESHOLD
    return Said(what, "A.1", ours, "met" if met else "not met")


def _predicted(rows: Sequence[Row]) -> Said:
    off = [row.utal_ms / row.predicted_ms - 1 for row in rows if row.utal_ms and row.predicted_ms]
    what = "UTAL of static mappings is the largest TotalP times a transmission, ± 2 %"
    if not off:
        return Said(what, "A.5", "–", "unknown")
    average = mean(off).value or 0.0
    ours = f"{average:+.2%} on average, {min(off):+.2%} to {max(off):+.2%} in single runs"
    if min(row.case.updates for row in rows) < _ENOUGH:
        short = "; in runs this short, copies that only wait at the end count as overload"
        return Said(what, "A.5", ours + short, "unknown")
    return Said(what, "A.5", ours, "met" if abs(average) <= 0.02 else "not met")


def write_report(
    rows: Sequence[Row], points: Sequence[Point], scale: str, out: Path
) -> tuple[Path, str]:
    """Write report.md, figures/, values.csv, gdfr.csv and claims.csv; returns the path, and how
    much is met.
    """
    said = judged(rows, points)
    pa.csv.write_csv(_flat(rows), out / "values.csv")
    pa.csv.write_csv(_flat(points), out / "gdfr.csv")
    pa.csv.write_csv(pa.Table.from_pylist([asdict(one) for one in said]), out / "claims.csv")
    met = sum(one.outcome == "met" for one in said)
    summary = f"{met} of {len(said)} claims met"
    claims = [(one.what, one.source, one.ours, one.outcome) for one in said]
    text = [
        f"# {TITLE}", "", *_ABOUT.strip().splitlines(), "", f"Scale {scale}: {summary}.", "",
        "Our reading of the paper, which lacks pages:", "",
        *(f"- {reading}" for reading in _readings()), "",
        "## What the paper says", "",
        *markdown(("claim", "source", "ours", "outcome"), claims), "",
    ]  # fmt: skip
    for profile in PROFILES:
        text += _figure(points, profile, out / "figures")
        for scheduler in SCHEDULERS:
            text += _table(rows, profile, scheduler)
    with replacing(out / "report.md") as new:
        new.write_text("\n".join(text) + "\n", "utf-8")
    return out / "report.md", summary


def _flat(found: Sequence[Row] | Sequence[Point]) -> pa.Table:
    """A column for each field, those of the case first."""
    rows = [asdict(one) for one in found]
    return pa.Table.from_pylist([{**row.pop("case"), **row} for row in rows])


def _figure(points: Sequence[Point], profile: str, folder: Path) -> Iterator[str]:
    folder.mkdir(exist_ok=True)
    figure, name = drawn(points, profile), f"gdfr-{profile}"
    for form in ("png", "svg"):
        save(figure, folder / f"{name}.{form}", form)
    caption = (
        f"GDFR over the update rate, profiles {profile}, seed 1: flat, then it lifts off; a mark "
        "is where the search found the UTAL."
    )
    yield from (f"## {caption.partition(',')[0]}, profiles {profile}", "")
    yield from (f"![{caption}](figures/{name}.png)", "", f"{caption} (gdfr.csv)", "")


def _table(rows: Sequence[Row], profile: str, scheduler: str) -> Iterator[str]:
    yield from (f"## Profiles {profile}, scheduler {scheduler}", "")
    lines = [
        (assignment, mapping, *map(_of(rows, profile, scheduler, assignment, mapping), _MEASURES))
        for assignment in ASSIGNMENTS
        for mapping in MAPPINGS
    ]
    yield from (*markdown(("assignment", "mapping", *_MEASURES), lines), "")


def _of(rows: Sequence[Row], *case: str) -> Callable[[str], str]:
    names = ("profile", "scheduler", "assignment", "mapping")
    chosen = dict(zip(names, case, strict=True))
    return lambda measure: estimate_text(
        mean([value for of_seed in values(rows, measure, **chosen).values() for value in of_seed])
    )
