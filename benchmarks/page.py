"""RESULTS.md, from all kept outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks import estimates, results, stored
from benchmarks.growth import AXES, COSTS, draw, exponent
from benchmarks.histories import SIZE as HISTORY
from benchmarks.markdown import against, number, table
from benchmarks.results import Results
from benchmarks.sizes import SIZES, Size
from benchmarks.variants import VARIANTS
from benchmarks.watched import Json

_HEAD = """# Results

Made by `python -m benchmarks` (see [README.md](README.md)); do not edit. Seconds are wall time,
the least of several runs of quick steps; *processor* counts all processes. × is the ratio to the
first line of the table, from the same machine and day. ≈ is extrapolated from some of the
intervals. Memory is the peak of all processes together; shared pages count in each process.
"""
_OURS = {
    "kernels": "kernels alone, a process per processor: the limit",
    "spark": "vizpub, Spark in local mode, versions to Parquet",
}
_OTHERS = {
    "igraph": "igraph",
    "networkit": "NetworKit",
    "networkx": "networkx",
    "raphtory": "Raphtory",
}
_INGESTS = {
    "ingest": "NDJSON, no betweenness",
    "ingest-exact": "NDJSON, exact betweenness",
    "ingest-sampled": "NDJSON, sampled",
}
_REWRITTEN = {
    "ingest-reordered": "the same, fields in another order, default spaces",
    "ingest-escaped": "the same, an escape in 1 % of the lines",
}
EXPLORED = ((10_000, 100_000), (50_000, 500_000))
"""Peers and link periods of the runs that the explorer shows."""
EXPLORER = "explorer"
"""In the place of a size, for outcomes of `python -m benchmarks.explore`."""
_PICTURE = ("first picture, with the start of the server", "first picture, in a server that runs")
_ANSWERS = {
    "overlay": "periods of peers and links",
    "column": "a metric of the peers in 100 intervals",
}
Part = Mapping[str, Json]


def write_page() -> None:
    """Write RESULTS.md and its figures."""
    outcomes = results.read_outcomes()
    results.PAGE.write_text(page(outcomes), encoding="utf-8")
    for name, size in SIZES.items():
        if outcome := outcomes.get(name, {}).get("growth"):
            draw(size, outcome, results.PAGE.with_name(growth_figure(name)))


def page(outcomes: Results) -> str:
    """The page as Markdown."""
    sections = [_HEAD]
    for name, size in SIZES.items():
        if parts := outcomes.get(name):
            title = f"{size.peers:,} peers × {size.intervals:,} intervals × {size.links} links"
            sections.append(f"## {name}: {title}\n")
            sections += [text for text in _sections(parts, size) if text]
    if parts := outcomes.get(EXPLORER):
        sections += ["## The explorer\n", _explorer(parts), _circumstances(parts)]
    return "\n".join(sections)


def _sections(parts: Part, size: Size) -> list[str]:
    return [
        _structure(parts, size.intervals),
        _ingest(parts),
        estimates.section(parts),
        _append(parts, size.intervals),
        _stored(parts),
        _growth(parts, size),
        _history(parts),
        _circumstances(parts),
    ]


def _structure(parts: Part, intervals: int) -> str:
    """Metrics of every interval."""
    limit = {name: _least(parts, "kernels", name) for name in VARIANTS}
    header = ["program", "structure, s", "+ topics, s", "+ betweenness, s", "+ both, s"]
    header += ["structure, processor s", "+ betweenness, processor s", "peak MB"]
    rows = [
        [
            label,
            *(against(parts[part]["steps"][name]["least"], limit[name]) for name in VARIANTS),
            *(number(parts[part]["steps"][n]["cpu_least"]) for n in ("structure", "betweenness")),
            number(parts[part]["peak_mb"]),
        ]
        for part, label in _OURS.items()
        if part in parts
    ]
    rows += [
        _one_by_one(parts[part], label, limit, intervals)
        for part, label in _OTHERS.items()
        if part in parts
    ]
    if not rows:
        return ""
    measured = _measured(parts, *_OURS, *_OTHERS)
    return f"### Metrics of every interval\n\n{table(header, rows)}{measured}{_session(parts)}"


def _least(parts: Part, part: str, step: str) -> float | None:
    return float(parts[part]["steps"][step]["least"]) if part in parts else None


def _one_by_one(
    outcome: Json, label: str, limit: Mapping[str, float | None], intervals: int
) -> list[str]:
    """Programs that measure one interval after the other: the cost of each, times the run's
    intervals."""
    steps, measured = outcome["steps"], outcome["facts"]["intervals"]
    prefix = "" if measured == intervals else "≈ "
    (version,) = outcome["versions"].values()

    def over_all(kind: str, *names: str) -> float:
        load = steps["load"][kind]
        return float(load + intervals * sum(steps[name][kind] for name in names))

    both = ("structure", "betweenness")
    return [
        f"{label} {version}, {measured:,} of {intervals:,} intervals",
        against(over_all("mean", "structure"), limit["structure"], prefix),
        "–",
        against(over_all("mean", *both), limit["betweenness"], prefix),
        "–",
        prefix + number(over_all("cpu_mean", "structure")),
        prefix + number(over_all("cpu_mean", *both)),
        number(outcome["peak_mb"]),
    ]


def _session(parts: Part) -> str:
    """What precedes and follows the stage in Spark."""
    if "spark" not in parts:
        return ""
    steps = {name: step["first"] for name, step in parts["spark"]["steps"].items()}
    return (
        f"\nStart of the Spark session: {number(steps['session'])} s. The first stage of metrics "
        f"in it, while everything is cold: {number(steps['structure'])} s.\n"
    )


def _ingest(parts: Part) -> str:
    """A column for each ingest, a row for each stage."""
    shown = {part: label for part, label in _INGESTS.items() if part in parts}
    if not shown:
        return ""
    stages = list(dict.fromkeys(stage for part in shown for stage in parts[part]["steps"]))
    header = ["stage"]
    for label in shown.values():
        header += [f"{label}, s", "processor, s", "peak MB"]
    rows = [[stage, *_stage_cells(parts, shown, stage)] for stage in stages]
    total = ["**all**"]
    for part in shown:
        steps = parts[part]["steps"].values()
        total += [number(sum(step[kind] for step in steps)) for kind in ("mean", "cpu_mean")]
        total.append(number(parts[part]["peak_mb"]))
        if proportional := parts[part].get("proportional_mb"):
            total[-1] += f" ({number(proportional)} if shared pages count once)"
    title = "### From reports to metrics, stage by stage\n\n"
    rewritten = {part: label for part, label in _REWRITTEN.items() if part in parts}
    measured = _measured(parts, *shown, *rewritten, "periods")
    return title + table(header, [*rows, total]) + measured + _yardstick(parts, shown | rewritten)


def _yardstick(parts: Part, shown: Mapping[str, str]) -> str:
    """Ingests as multiples of DuckDB's periods of the same reports."""
    if "periods" not in parts:
        return ""
    limit, (version,) = parts["periods"]["steps"]["periods"], parts["periods"]["versions"].values()
    text = (
        f"\nDuckDB {version} makes nothing but the periods of the links from these reports: "
        f"{number(limit['mean'])} s, {number(limit['cpu_mean'])} processor s. As multiples:\n\n"
    )
    rows = []
    for part, label in shown.items():
        steps = parts[part]["steps"]
        names = list(steps)
        for reach in ("periods", names[-1]):
            spent = [steps[name] for name in names[: names.index(reach) + 1]]
            cells = (
                f"{number(sum(step[kind] for step in spent) / limit[kind])}×"
                for kind in ("mean", "cpu_mean")
            )
            rows.append([label, reach, *cells])
    return text + table(["ingest", "until", "wall", "processor"], rows)


def _stage_cells(parts: Part, shown: Iterable[str], stage: str) -> list[str]:
    cells = []
    for part in shown:
        step = parts[part]["steps"].get(stage)
        kinds = ("mean", "cpu_mean", "peak_mb")
        cells += [number(step[kind]) for kind in kinds] if step else ["–"] * len(kinds)
    return cells


def _append(parts: Part, intervals: int) -> str:
    """A tenth more intervals."""
    if "append" not in parts:
        return ""
    outcome = parts["append"]
    more, every = intervals // 10, intervals + intervals // 10
    labels = {
        "whole": f"{every:,} intervals at once",
        "begun": f"the first {intervals:,}",
        "appended": f"{more:,} appended to them",
    }
    limit = _stages_took(outcome["whole"], "mean")
    rows = [
        [
            label,
            against(_stages_took(outcome[name], "mean"), limit),
            number(_stages_took(outcome[name], "cpu_mean")),
            number(outcome[name]["peak_mb"]),
        ]
        for name, label in labels.items()
    ]
    header = ["ingest without betweenness, after the session has started", "s"]
    header += ["processor, s", "peak MB"]
    return "### Appending\n\n" + table(header, rows) + _measured(parts, "append")


def _stages_took(outcome: Json, kind: str) -> float:
    return float(sum(step[kind] for name, step in outcome["steps"].items() if name != "session"))


def _stored(parts: Part) -> str:
    """A workspace in S3 beside a folder."""
    text = stored.section(parts)
    return text and text + _measured(parts, "stored", "stored-demo")


def _growth(parts: Part, size: Size) -> str:
    """Cost against size, with exponents."""
    if "growth" not in parts:
        return ""
    outcome, text = parts["growth"], f"### Growth\n\n![growth]({growth_figure(size.name)})\n"
    for axis in AXES:
        points = outcome[axis]
        rows = [[f"{p[axis]:,}", *(number(p[cost]) for cost in COSTS)] for p in points]
        exponents = (f"**{exponent(points, axis, cost):.2f}**" for cost in COSTS)
        text += "\n" + table([axis, *COSTS.values()], [*rows, ["**exponent**", *exponents]])
    return text + _measured(parts, "growth")


def _history(parts: Part) -> str:
    """Queries in longer and longer runs, and the cost of the copies that keep them cheap."""
    if "history" not in parts:
        return ""
    outcome = parts["history"]
    lengths = [str(length) for length in outcome["lengths"]]
    rows = [
        _question(name if first else "", way, query[way], lengths)
        for name, query in outcome["queries"].items()
        for first, way in zip((True, False), [w for w in _WAYS if query[w]], strict=False)
    ]
    at = [f"{number(float(length))}" for length in lengths]
    header = ["query", "reads", *(f"dbHits at {n}" for n in at), "×", *(f"ms at {n}" for n in at)]
    return (
        "### Questions to a history\n\n"
        f"Runs of {HISTORY.peers} peers with {HISTORY.links} links each, of which "
        f"{HISTORY.churn:.0%} are replaced per interval; on average over three times. "
        "× is from the shortest to the longest run.\n\n"
        f"{table(header, rows)}\n{_loads(outcome)}{_measured(parts, 'history')}"
    )


def _explorer(parts: Part) -> str:
    """The page of `vizpub explore` in Chromium, and its server."""
    outcome = parts["figures"]
    seconds = outcome.get("first_picture_s", ())
    rows = [
        [label, "the demo", f"{number(value)} s"]
        for label, value in zip(_PICTURE, seconds, strict=False)
    ]
    for peers, links in EXPLORED:
        size = f"{peers:,} peers, {links:,} link periods"
        pages = outcome[f"{peers} page"]
        rows += [
            [f"script of a step of time{shown}, processor", size, f"{number(page['step_ms'])} ms"]
            for shown, page in pages.items()
        ]
        most = max(page["page_mb"] for page in pages.values())
        rows.append(["heap and typed arrays of the page", size, f"{number(most)} MB"])
        for name, label in _ANSWERS.items():
            plain, packed = (number(count / 1e6) for count in outcome[f"{peers} bytes"][name])
            rows.append([f"{label}, as sent", size, f"{plain} MB (in gzip {packed} MB)"])
    memory = outcome["server_mb"]
    asked = ", ".join(f"{int(count):,}" for count in memory)
    sizes = ", ".join(number(size) for size in memory.values())
    label = f"proportional set of the server after {asked} requests of ten clients"
    rows.append([label, f"{EXPLORED[0][0]:,} peers", f"{sizes} MB"])
    return (
        "Colour and size follow metrics. Chromium paints in software here, which counts in the "
        "first picture alone.\n\n"
        + table(["what", "of", "measured"], rows)
        + _measured(parts, "figures")
    )


_WAYS = {"without": "", "with": "time partitions"}


def _question(
    name: str, reads: str, costs: Mapping[str, Json | None], lengths: list[str]
) -> list[str]:
    """A line; – where it ran out of time."""
    known_costs = [costs[length] or {} for length in lengths]
    hits, times = ([one.get(kind) for one in known_costs] for kind in ("hits", "ms"))
    grown = number(hits[-1] / hits[0]) if hits[0] and hits[-1] else "–"
    cells = [["–" if x is None else number(x) for x in row] for row in (hits, times)]
    return [name, _WAYS[reads], *cells[0], grown, *cells[1]]


_LOADS = {
    "relationships": "relationships",
    "cpu": "processor s to load",
    "seconds": "s",
    "megabytes": "MB of the store",
}


def _loads(outcome: Json) -> str:
    """The cost of the copies in the run of `compared` intervals."""
    both = outcome["loads"]
    rows = [[f"{way} copies", *(number(both[way][kind]) for kind in _LOADS)] for way in both]
    ratios = (number(both["with"][kind] / both["without"][kind]) + "×" for kind in _LOADS)
    header = [f"a run of {outcome['compared']:,} intervals", *_LOADS.values()]
    return table(header, [*rows, ["", *ratios]])


def growth_figure(name: str) -> str:
    """The file beside the page that shows how costs grow."""
    return f"growth-{name}.png"


def _measured(parts: Part, *names: str) -> str:
    """When, and of which commit, each part of a table was measured."""
    noted = (
        f"{name} {of['date'][:10]}, {of.get('commit') or 'commit not recorded'}"
        for name in names
        if (of := parts.get(name))
    )
    return f"\nMeasured: {'; '.join(noted)}.\n"


def _circumstances(parts: Part) -> str:
    """When and on what machine each part was measured, and the load of the machine by other
    processes."""
    rows = [
        [
            part,
            outcome["date"],
            outcome.get("commit") or "not recorded",
            " → ".join(map(str, outcome["load"])),
            describe_machine(outcome["machine"]),
            _versions(outcome),
        ]
        for part, outcome in parts.items()
    ]
    header = ["part", "measured", "commit", "load", "machine", "versions"]
    return "### Circumstances\n\n" + table(header, rows)


def describe_machine(machine: Json) -> str:
    """The processor, memory, system and Python."""
    return (
        f"{machine['processors']} × {machine['processor']}, {machine['memory_gb']} GB, "
        f"{machine['system']}, Python {machine['python']}"
    )


def _versions(outcome: Json) -> str:
    """The outcome itself, or the outcomes in it."""
    if "versions" in outcome:
        return ", ".join(f"{name} {version}" for name, version in outcome["versions"].items())
    inner = (_versions(part) for part in outcome.values() if isinstance(part, dict))
    return ", ".join(dict.fromkeys(text for text in inner if text))
