"""vizpub in Python: `import vizpub` is all that a notebook or a program needs.

    run = vizpub.ingest_files("traces/", run="monday")
    run.metrics("overlay", ["average_path_length"]).to_pandas()
    run.topic("news", 12).to_networkx()

`ReportWriter` and `ReportReader` write and read reports, `Run.open` opens a run. All errors are
`VizpubError`s. docs/python.md lists the public names; all others are private. `__version__` is the
installed version. A name is imported on first use, so that `import vizpub` loads neither Arrow nor
Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vizpub.analytics import figures as figures
    from vizpub.analytics.graphframes import graphs as graphs
    from vizpub.analytics.own import Interval as Interval
    from vizpub.analytics.own import Message as Message
    from vizpub.analytics.own import metric as metric
    from vizpub.calls import ask as ask
    from vizpub.calls import compare as compare
    from vizpub.calls import ingest_files as ingest_files
    from vizpub.calls import runs as runs
    from vizpub.calls import simulate as simulate
    from vizpub.graphstore.ask import py2neo_bridge as py2neo_bridge
    from vizpub.graphstore.ask.queries import Answer as Answer
    from vizpub.graphstore.server.connection import find_connection as find_connection
    from vizpub.model import errors as errors
    from vizpub.model.errors import VizpubError as VizpubError
    from vizpub.model.version import __version__ as __version__
    from vizpub.questions.frames import Frame as Frame
    from vizpub.questions.run import Where as Where
    from vizpub.reports.files import ReportReader as ReportReader
    from vizpub.reports.files import ReportWriter as ReportWriter
    from vizpub.reports.files import problems as problems
    from vizpub.reports.records import Attribute as Attribute
    from vizpub.reports.records import Counters as Counters
    from vizpub.reports.records import Neighbor as Neighbor
    from vizpub.reports.records import Received as Received
    from vizpub.reports.records import Report as Report
    from vizpub.reports.records import Role as Role
    from vizpub.reports.records import RunHeader as RunHeader
    from vizpub.reports.records import Sent as Sent
    from vizpub.run import Run as Run
    from vizpub.simulators.engine.network import Copy as Copy
    from vizpub.simulators.engine.network import Links as Links
    from vizpub.simulators.engine.network import Network as Network
    from vizpub.simulators.engine.network import System as System

_PLACES = {
    "Answer": "vizpub.graphstore.ask.queries",
    "Attribute": "vizpub.reports.records",
    "Copy": "vizpub.simulators.engine.network",
    "Counters": "vizpub.reports.records",
    "Frame": "vizpub.questions.frames",
    "Interval": "vizpub.analytics.own",
    "Links": "vizpub.simulators.engine.network",
    "Message": "vizpub.analytics.own",
    "Neighbor": "vizpub.reports.records",
    "Network": "vizpub.simulators.engine.network",
    "Received": "vizpub.reports.records",
    "Report": "vizpub.reports.records",
    "ReportReader": "vizpub.reports.files",
    "ReportWriter": "vizpub.reports.files",
    "Role": "vizpub.reports.records",
    "Run": "vizpub.run",
    "RunHeader": "vizpub.reports.records",
    "Sent": "vizpub.reports.records",
    "System": "vizpub.simulators.engine.network",
    "VizpubError": "vizpub.model.errors",
    "Where": "vizpub.questions.run",
    "__version__": "vizpub.model.version",
    "ask": "vizpub.calls",
    "compare": "vizpub.calls",
    "find_connection": "vizpub.graphstore.server.connection",
    "ingest_files": "vizpub.calls",
    "metric": "vizpub.analytics.own",
    "problems": "vizpub.reports.files",
    "runs": "vizpub.calls",
    "simulate": "vizpub.calls",
}
"""The module of each public name."""
_MODULES = {
    "errors": "vizpub.model.errors",
    "figures": "vizpub.analytics.figures",
    "graphs": "vizpub.analytics.graphframes.graphs",
    "py2neo_bridge": "vizpub.graphstore.ask.py2neo_bridge",
}
"""The public modules, by their public names."""
__all__ = sorted({*_PLACES, *_MODULES} - {"__version__"})  # noqa: PLE0605 - names, as text


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562)."""
    if name in _MODULES:
        found: object = import_module(_MODULES[name])
    elif name in _PLACES:
        found = getattr(import_module(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'vizpub' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*_PLACES, *_MODULES]
