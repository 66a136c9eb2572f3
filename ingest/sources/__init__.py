"""The sources, in the order in which they are asked whether they recognise a file."""

from ingest.sources.base import Source
from ingest.sources.deliveries import Deliveries
from ingest.sources.edges import Edges
from ingest.sources.hermes import Hermes
from ingest.sources.interop import Interop
from ingest.sources.libp2p import Libp2p
from ingest.sources.nebula import Nebula
from ingest.sources.reports import Reports
from ingest.sources.vizpub import Vizpub

SOURCES: tuple[Source, ...] = (
    *(Reports(), Libp2p(), Interop(), Hermes()),
    *(Vizpub(), Nebula(), Deliveries(), Edges()),
)


def source_named(name: str) -> Source:
    """The source of that name."""
    return next(source for source in SOURCES if source.name == name)
