"""The report of the experiment: every combination, and what the paper says in words, judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from vizpub.analytics.comparison.estimates import Estimate, mean
from vizpub.experiments.channels.curves import (
    ABOVE,
    BELOW,
    CurvePoint,
    draw_curves,
    measure_curves,
)
from vizpub.experiments.channels.measuring import (
    ASSIGNMENTS,
    PROFILES,
    SCHEDULERS,
    CaseResult,
    list_cases,
    measure_cases,
    measured_file,
)
from vizpub.experiments.claims import (
    JudgedClaim,
    OrderClaim,
    ValueClaim,
    judge_statement,
    summarize_claims,
)
from vizpub.experiments.formatting import UNKNOWN, duration_text, markdown_table
from vizpub.experiments.groups import WHOLE, Share, groups_of
from vizpub.experiments.measured import (
    MeasuredExperiment,
    MeasuringRequest,
    rows_of_means,
    rows_table,
)
from vizpub.experiments.report import ExperimentReport, claims_table
from vizpub.experiments.results import subtract_estimates
from vizpub.simulators.channels.liftoff import THRESHOLD
from vizpub.simulators.channels.parameters import MAPPINGS, READINGS
from vizpub.simulators.engine.costs import Costs

TITLE = "Broadcast channels: assignments, mappings and schedulers (Bose 1999)"
_ABOUT = """
100 clients listen to 3 of 8 channels each and want 10 of 100 pages: any (uniform), or around 2 of 5
hot spots by Zipf's law (clustered). Updates are of the 5 sources alike, within one by Zipf's law. A
page takes 10 ms. UTAL is the mean gap of updates at which the channels begin to overload
(more than 0.005 copies left over per time of a transmission); staleness, fluff and copies (channels
per update) are those with an update every 10 ms; busy staleness is that of all first receptions at
95 % of the rate of the UTAL. Intervals are of 95 %, over the seeds. The paper lacks pages:
the notes are our reading.
"""
_SOURCE = "Bose, The Pub-Sub Simulator, 1999"
_NOTES = [text for name, text in READINGS.items() if name not in ("drop", "poisson")]
_MEASURES = ("utal_ms", "staleness_ms", "busy_staleness_ms", "fluff", "copies", "uneven")
_ENOUGH = 100_000
"""Updates of a run that tells an overload of 2 %."""
_SEARCH_S = {"small": 0.5, "full": 3.5}
"""Processor time of a search with its runs and curves, measured."""
_CAPTION = "flat, then it lifts off; a mark is where the search found the UTAL."
_STEEP = 10
"""Times the threshold that is left over beyond it."""


_Case = tuple[int, tuple[tuple[str, object], ...]]
"""The seed, and parts of a case with their values."""


class ChannelResults:
    """Measured cases, by the parts that they have in common: 'mapping=c profile=uniform'."""

    def __init__(self, rows: Sequence[CaseResult]) -> None:
        self.rows = rows

    def _known_values(
        self, measure: str, parts: Mapping[str, str], apart: Collection[str]
    ) -> dict[_Case, float]:
        """A measure of all rows with these parts where it is known, by the case, `apart` from
        some of its parts.
        """
        values = {}
        for row in self.rows:
            value, case = getattr(row, measure), {**vars(row.case), "scheduler": row.scheduler}
            if value is not None and parts.items() <= case.items():
                rest = tuple(item for item in case.items() if item[0] not in apart)
                values[row.case.seed, rest] = float(value)
        return values

    def estimate(self, metric: str, term: str, during: Share = WHOLE) -> Estimate:
        """One part over the other, case by case of what else is the same and known; the mean of
        each seed.
        """
        groups = [dict(part.split("=") for part in group.split()) for group in groups_of(term)]
        apart = {name for parts in groups for name in parts}
        first, second = (self._known_values(metric, parts, apart) for parts in groups)
        ratios = defaultdict[int, list[float]](list)
        for seed, rest in sorted(first.keys() & second.keys()):
            ratios[seed].append(first[seed, rest] / second[seed, rest])
        return mean([sum(of_seed) / len(of_seed) for of_seed in ratios.values()])

    def difference(self, metric: str, terms: tuple[str, str], during: Share = WHOLE) -> Estimate:
        """The first term minus the second, within what the intervals of both allow."""
        first, second = (self.estimate(metric, term) for term in terms)
        return subtract_estimates(first, second)


def _less(statement: str, source: str, metric: str, of: str, most: float = 1) -> ValueClaim:
    return ValueClaim(what=statement, source=source, metric=metric, of=of, below=most)


_NOT_LARGER = 1 + 1e-9
_CLAIMS = (
    _less("Similar clients together receive less fluff: lc / random, clustered", "4.1",
         "fluff", "assignment=lc profile=clustered / assignment=random profile=clustered"),
    _less("… and need fewer channels for an update: c with lc / random, clustered", "4.1",
         "copies", "assignment=lc profile=clustered mapping=c / "
         "assignment=random profile=clustered mapping=c"),
    OrderClaim(what="Random does especially well when profiles are alike (uniform, beside "
               "clustered): UTAL, random / lc", source="4.2.1", metric="utal_ms",
               order=("assignment=random profile=uniform / assignment=lc profile=uniform",
                      "assignment=random profile=clustered / assignment=lc profile=clustered")),
    _less("An efficient mapper loads the channels less than the benchmark: "
         "copies, c / random", "5.1, 5.2.1", "copies", "mapping=c / mapping=random"),
    _less("… so it lifts off at a smaller gap: UTAL, c / random", "5.1",
         "utal_ms", "mapping=c / mapping=random"),
    _less("The least covers are not larger than greedy ones: copies, perfect-c / offline-c",
         "5.1", "copies", "mapping=perfect-c / mapping=offline-c", _NOT_LARGER),
    _less("Algorithms that look at page probabilities even the load: uneven, pc / random, "
         "clustered", "4.1", "uneven",
         "assignment=pc profile=clustered / assignment=random profile=clustered"),
    _less("RxW serves what many want first: busy staleness, rxw / fifo", "A.6; expected",
         "busy_staleness_ms", "scheduler=rxw / scheduler=fifo", _NOT_LARGER),
)  # fmt: skip


def judge_claims(rows: Sequence[CaseResult], points: Sequence[CurvePoint]) -> list[JudgedClaim]:
    """Judge the statements of the paper by our runs."""
    results = ChannelResults(rows)
    claims = [claim.judge(results) for claim in _CLAIMS]
    return [*claims, _judge_liftoff(points), _judge_prediction(rows)]


def _judge_liftoff(points: Sequence[CurvePoint]) -> JudgedClaim:
    statement = (
        f"GDFR is flat, then lifts off: at {BELOW:g} and {ABOVE:g} of the rate, in every curve"
    )
    bounds = f"at most {THRESHOLD:g} and at least {_STEEP * THRESHOLD:g}"
    if not points:
        return judge_statement(statement, "A.1", bounds, UNKNOWN, None)
    calm, busy = ([p.overload for p in points if p.share == share] for share in (BELOW, ABOVE))
    ours = (
        f"at most {max(calm):.2g} and at least {min(busy):.2g} copies left over per transmission, "
        f"in {len(calm)} curves"
    )
    holds = max(calm) <= THRESHOLD and min(busy) >= _STEEP * THRESHOLD
    return judge_statement(statement, "A.1", bounds, ours, holds)


def _judge_prediction(rows: Sequence[CaseResult]) -> JudgedClaim:
    deviations = [
        row.utal_ms / row.predicted_ms - 1 for row in rows if row.utal_ms and row.predicted_ms
    ]
    statement, published = (
        "UTAL of static mappings is the largest TotalP times a transmission",
        "± 2 %",
    )
    if not deviations:
        return judge_statement(statement, "A.5", published, UNKNOWN, None)
    average = sum(deviations) / len(deviations)
    extremes = f"{min(deviations):+.2%} to {max(deviations):+.2%}"
    ours = f"{average:+.2%} on average, {extremes} in single runs"
    holds: bool | None = abs(average) <= 0.02
    if min(row.case.updates for row in rows) < _ENOUGH:
        ours += "; in runs this short, copies that only wait at the end count as overload"
        holds = None
    return judge_statement(statement, "A.5", published, ours, holds)


def describe_cases(scale: str) -> Iterator[str]:
    """Yield a line about the number of cases and their cost."""
    cases = list_cases(scale)
    processor_time = duration_text(round(_SEARCH_S[scale] * len(cases), -2))
    yield f"runs: {len(cases)} searches; about {processor_time} of processor time, 1 MB kept"


def estimate(request: MeasuringRequest) -> Costs:
    """Estimate the searches that are missing."""
    cases = list_cases(request.scale, request.seeds)
    missing = measured_file(request).list_missing(cases, request)
    return request.costs(_SEARCH_S[request.scale] * len(missing))


def make_report(request: MeasuringRequest) -> ExperimentReport:
    """Measure the channels in the compiled pipeline, in processes."""
    rows = measure_cases(list_cases(request.scale, request.seeds), request)
    request.progress("GDFR over the update rate", 0, 0)
    return report_on(rows, measure_curves(rows, request.processes), request.scale)


def report_on(
    rows: Sequence[CaseResult], points: Sequence[CurvePoint], scale: str
) -> ExperimentReport:
    """Report on measured cases and curves."""
    claims = judge_claims(rows, points)
    sections: dict[str, Iterable[str]] = {}
    for profile in PROFILES:
        title, image = (
            f"GDFR over the update rate, profiles {profile}",
            f"figures/gdfr-{profile}.png",
        )
        caption = f"{title}, seed 1: {_CAPTION}"
        sections[title] = [f"![{caption}]({image})", "", f"{caption} (gdfr.csv)"]
        for scheduler in SCHEDULERS:
            lines = _table_lines(rows, profile, scheduler)
            sections[f"Profiles {profile}, scheduler {scheduler}"] = lines
    return ExperimentReport(
        TITLE,
        _ABOUT,
        _SOURCE,
        summarize_claims(claims),
        f"scale `{scale}`",
        claims,
        _NOTES,
        sections,
        {
            "values": rows_table(rows),
            "gdfr": rows_table(points),
            "claims": claims_table(claims),
        },
        {f"gdfr-{profile}": draw_curves(points, profile) for profile in PROFILES},
    )


EXPERIMENT = MeasuredExperiment(
    TITLE, _ABOUT, _SOURCE, _NOTES, list_cases, describe_cases, estimate, make_report
)


def _table_lines(rows: Sequence[CaseResult], profile: str, scheduler: str) -> Iterator[str]:
    groups: dict[tuple[str, ...], list[CaseResult]] = {
        (assignment, mapping): [
            row
            for row in rows
            if row.case.combination == (profile, assignment, mapping) and row.scheduler == scheduler
        ]
        for assignment in ASSIGNMENTS
        for mapping in MAPPINGS
    }
    heads = ("assignment", "mapping", *_MEASURES)
    yield from markdown_table(heads, rows_of_means(groups, _MEASURES))
