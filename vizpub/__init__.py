"""vizpub in Python: `import vizpub` is all that a notebook or a program needs.

    run = vizpub.ingest_files("traces/", run="monday")
    run.metrics("overlay", ["average_path_length"]).to_pandas()
    run.topic("news", 12).to_networkx()

`ReportWriter` and `ReportReader` write and read reports, `Run.open` opens a run. All errors are
`VizpubError`s. A name is imported on first use, so that `import vizpub` loads neither Arrow nor
Spark.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vizpub.analytics.own import Interval as Interval
    from vizpub.analytics.own import Message as Message
    from vizpub.analytics.own import metric as metric
    from vizpub.calls import ask as ask
    from vizpub.calls import compare as compare
    from vizpub.calls import ingest_files as ingest_files
    from vizpub.calls import simulate as simulate
    from vizpub.graphstore.ask.queries import Answer as Answer
    from vizpub.ingest.reports.files import Counters as Counters
    from vizpub.ingest.reports.files import Neighbor as Neighbor
    from vizpub.ingest.reports.files import Received as Received
    from vizpub.ingest.reports.files import Report as Report
    from vizpub.ingest.reports.files import ReportReader as ReportReader
    from vizpub.ingest.reports.files import ReportWriter as ReportWriter
    from vizpub.ingest.reports.files import Role as Role
    from vizpub.ingest.reports.files import RunHeader as RunHeader
    from vizpub.ingest.reports.files import Sent as Sent
    from vizpub.model.errors import VizpubError as VizpubError
    from vizpub.runstore.frames import Frame as Frame
    from vizpub.runstore.run import Run as Run
    from vizpub.runstore.run import Where as Where

_PLACES = {
    "Interval": "vizpub.analytics.own",
    "Message": "vizpub.analytics.own",
    "metric": "vizpub.analytics.own",
    "Answer": "vizpub.graphstore.ask.queries",
    "Frame": "vizpub.runstore.frames",
    "Report": "vizpub.ingest.reports.files",
    "Counters": "vizpub.ingest.reports.files",
    "Neighbor": "vizpub.ingest.reports.files",
    "Received": "vizpub.ingest.reports.files",
    "Role": "vizpub.ingest.reports.files",
    "RunHeader": "vizpub.ingest.reports.files",
    "Sent": "vizpub.ingest.reports.files",
    "ReportReader": "vizpub.ingest.reports.files",
    "ReportWriter": "vizpub.ingest.reports.files",
    "Run": "vizpub.runstore.run",
    "VizpubError": "vizpub.model.errors",
    "Where": "vizpub.runstore.run",
    "ask": "vizpub.calls",
    "compare": "vizpub.calls",
    "ingest": "vizpub.calls",
    "simulate": "vizpub.calls",
}
"""The module of each public name."""
__all__ = [*_PLACES]  # noqa: PLE0604 - names, as text


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module 'vizpub' has no attribute '{name}'")
    place = _PLACES[name]
    _check_origin(place.partition(".")[0])
    found = getattr(import_module(place), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__]


def _check_origin(package: str) -> None:
    """Raises: ImportError if another project's package of that name is installed."""
    found = import_module(package).__file__
    if found is None or Path(found).resolve().parents[1] != Path(__file__).resolve().parents[1]:
        raise ImportError(
            f"'{package}' is imported from {found}, which is not part of vizpub; "
            "install vizpub into an environment of its own"
        )
