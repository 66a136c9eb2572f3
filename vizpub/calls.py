"""The commands ingest, simulate, runs list, compare and query as Python functions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vizpub.graphstore.ask.queries import Answer
    from vizpub.questions.frames import Frame
    from vizpub.run import Run

_WORKSPACE = "vizpub-data"


def ingest_files(  # noqa: PLR0913 - the options of a command
    *paths: Path | str,
    run: str,
    workspace: Path | str = _WORKSPACE,
    source: str = "auto",
    interval: str | None = None,
    layers: list[str] | None = None,
    betweenness: bool = True,
    max_edge_visits: float = 2e10,
    own_metrics: list[str] | None = None,
    attributes: list[Path | str] | None = None,
    pattern: Path | str | None = None,
    replace: bool = False,
    append: bool = False,
) -> Run:
    """Make a run from files, folders or URIs, as `vizpub ingest --no-load` does.

    An interrupted ingest resumes; a complete run is opened. `interval` is a duration such as
    '500ms', `layers` are the layers whose links the metrics count, `max_edge_visits` the links to
    traverse per interval at most, beyond which betweenness and distances are sampled (with 1 always
    and least), `own_metrics` functions as FILE.py:NAME (docs/metrics.md), `attributes` side files
    with facts about peers, `pattern` a file of regular expressions for lines of logs, or the name
    of a shipped one (docs/sources.md).

    Raises: InputError, UseError, InputsDiffer if the run was made from other input,
    JavaMissing, SparkFailed and more, all VizpubError.
    """
    from vizpub.analytics.options import Measures
    from vizpub.ingest.measures.choice import MeasurementOptions
    from vizpub.ingest.measures.own import load_own_metrics as loaded
    from vizpub.ingest.pipeline import ingest as make
    from vizpub.ingest.request import IngestRequest
    from vizpub.ingest.sources.base import SourceOptions
    from vizpub.ingest.sources.lines.patterns import read_patterns
    from vizpub.model.clock import parse_duration_us
    from vizpub.run import Run
    from vizpub.runstore.stores.place import folder_of

    own = loaded(own_metrics or ())
    measures = Measures(betweenness, max_edge_visits=max_edge_visits, own=own)
    measuring = MeasurementOptions(tuple(layers) if layers else None, measures=measures)
    options = SourceOptions(
        parse_duration_us(interval) if interval else None,
        pattern=read_patterns(str(pattern)) if pattern is not None else None,
    )
    request = IngestRequest(
        tuple(map(str, paths)),
        run,
        folder_of(workspace),
        source,
        options,
        tuple(map(str, attributes or ())),
        measuring,
        replace=replace,
        append=append,
    )
    return Run(make(request).run)


def simulate(
    system: str, out: Path | str, *, seed: int = 1, replace: bool = False, **parameters: Any
) -> Path:
    """Simulate a system ('poldercast', 'scribe', …, or FILE.py:CLASS); returns its reports' folder.

    `parameters` are those of the system and of its world, as the options of `vizpub lab simulate`:
    `peers=200, churn="exponential:60s,down=20s"`. A simulation that exists already is reused.

    Raises: UnknownName, UseError, DiskFull.
    """
    from vizpub.simulators.engine.folder import Folder
    from vizpub.simulators.engine.plan import make_plan
    from vizpub.simulators.engine.simulation import simulate as run

    folder = Folder(Path(out))
    run(make_plan(system, parameters, seed), folder, replace=replace)
    return folder.reports


def runs(workspace: Path | str = _WORKSPACE) -> Frame:
    """The runs of a workspace with their states and sizes, as `vizpub runs list` has them.

    Runs that cannot be opened are there, too: broken, incomplete or retired. Nothing is asked of
    Neo4j. Raises: UseError for a workspace that cannot be read.
    """
    from vizpub.questions.frames import Frame
    from vizpub.questions.summary import runs_table
    from vizpub.runstore.collection import retired_collections
    from vizpub.runstore.store import runs as stored_runs
    from vizpub.runstore.stores.place import folder_of

    folder = folder_of(workspace)
    table = runs_table(stored_runs(folder), retired_collections(folder))
    return Frame(f"runs of {workspace}", table)


def compare(  # noqa: PLR0913 - the options of a command
    *runs: Run,
    metrics: list[str] | None = None,
    first: int | None = None,
    last: int | None = None,
    common: bool = False,
    by: list[str] | None = None,
    over: str | None = None,
    receivers: bool = False,
) -> Frame:
    """Compare metrics of runs: means over the runs of a group, and contrasts of two groups,
    with 95 % confidence intervals. Columns: docs/compare.md.

    A run is measured over its intervals from `first` to `last`; if `common`, over those that all
    runs have. `by` names what distinguishes groups, `over` a parameter at each of whose values they
    are compared; one of these may be an attribute of peers, and `receivers` then groups messages by
    who received them. Caveats are warnings.

    Raises: UnknownName, UseError for what cannot be compared.
    """
    from vizpub.analytics.comparison.per_run import ComparisonRequest, measure_runs
    from vizpub.analytics.comparison.tables import compare_groups, compare_settings
    from vizpub.questions.frames import Frame

    question = ComparisonRequest(
        tuple(metrics) if metrics else None,
        tuple(by) if by else None,
        window=(first, last),
        common=common,
        setting=over,
        receivers=receivers,
    )
    found = measure_runs(runs, question)
    for note in found.notes:
        warnings.warn(note, stacklevel=2)
    names = ", ".join(run.facts.name for run in runs)
    tabulate = compare_settings if over else compare_groups
    return Frame(f"comparison of {names}", tabulate(found.runs, found.metrics))


def ask(
    run: str, query: str, given: dict[str, object], workspace: Path | str = _WORKSPACE
) -> Answer:
    """The answer of a shipped query (docs/queries.md) about a run that is loaded into Neo4j.

    `given` holds its parameters: `{"at": 49, "peer": "alice"}`. The server is the one at
    NEO4J_URI, else the workspace's own (`vizpub neo4j start`).

    Raises: UnknownName, UseError, OutOfRange, Neo4jUnavailable and more, all VizpubError.
    """
    from vizpub.graphstore.ask.queries import ask as put
    from vizpub.graphstore.server.connection import connect, find_connection

    server = find_connection(Path(workspace) / "neo4j")
    with connect(server) as driver:
        return put(driver, server.database, query, given, run=run)
