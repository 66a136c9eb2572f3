"""vizpub in Python: `import vizpub` is all that a notebook or a program needs.

    run = vizpub.ingest("traces/", run="monday")
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
    from analytics.own import Interval as Interval
    from analytics.own import Message as Message
    from analytics.own import metric as metric
    from graphstore.ask.queries import Answer as Answer
    from ingest.reports.files import Counters as Counters
    from ingest.reports.files import Neighbor as Neighbor
    from ingest.reports.files import Received as Received
    from ingest.reports.files import Report as Report
    from ingest.reports.files import ReportReader as ReportReader
    from ingest.reports.files import ReportWriter as ReportWriter
    from ingest.reports.files import Role as Role
    from ingest.reports.files import RunHeader as RunHeader
    from ingest.reports.files import Sent as Sent
    from model.errors import VizpubError as VizpubError
    from runstore.frames import Frame as Frame
    from runstore.run import Run as Run
    from runstore.run import Where as Where
    from vizpub.calls import ask as ask
    from vizpub.calls import compare as compare
    from vizpub.calls import ingest as ingest
    from vizpub.calls import simulate as simulate

_PLACES = {
    "Interval": "analytics.own",
    "Message": "analytics.own",
    "metric": "analytics.own",
    "Answer": "graphstore.ask.queries",
    "Frame": "runstore.frames",
    "Report": "ingest.reports.files",
    "Counters": "ingest.reports.files",
    "Neighbor": "ingest.reports.files",
    "Received": "ingest.reports.files",
    "Role": "ingest.reports.files",
    "RunHeader": "ingest.reports.files",
    "Sent": "ingest.reports.files",
    "ReportReader": "ingest.reports.files",
    "ReportWriter": "ingest.reports.files",
    "Run": "runstore.run",
    "VizpubError": "model.errors",
    "Where": "runstore.run",
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
