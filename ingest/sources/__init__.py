"""The sources, in the order in which they are asked whether they recognise a file."""

from vizpub.ingest.sources.base import Source, SourceOptions
from vizpub.ingest.sources.bctrace.source import Bctrace
from vizpub.ingest.sources.deliveries import Deliveries
from vizpub.ingest.sources.edges.source import Edges
from vizpub.ingest.sources.hermes import Hermes
from vizpub.ingest.sources.interop import Interop
from vizpub.ingest.sources.libp2p.source import Libp2p
from vizpub.ingest.sources.lines.patterns import LinePatterns
from vizpub.ingest.sources.lines.source import Lines
from vizpub.ingest.sources.nebula import Nebula
from vizpub.ingest.sources.reports.source import Reports
from vizpub.ingest.sources.tables.delimited import COLUMNS, TableSource
from vizpub.ingest.sources.tables.user_columns import LEFT_OUT
from vizpub.ingest.sources.vizpub.source import Vizpub
from vizpub.ingest.sources.xatu.source import Xatu
from vizpub.model.errors import UseError

SOURCES: tuple[Source, ...] = (
    *(Reports(), Libp2p(), Interop(), Hermes(), Xatu(), Bctrace()),
    *(Vizpub(), Nebula(), Deliveries(), Edges(), Lines()),
)


def sources_for(options: SourceOptions, name: str = "") -> tuple[Source, ...]:
    """Return the sources that may read the input: that of lines if the user gave patterns, those of
    delimited text if the user gave columns.

    Raises: UseError for columns that no source has, and for the source of lines without patterns.
    """
    if options.pattern is not None:
        return (Lines(LinePatterns.parse(options.pattern)),)
    if name == Lines.name:
        raise UseError(f"--source {name} needs --pattern FILE.toml (vizpub docs: Sources)")
    if (columns := options.columns) is None:
        return SOURCES
    tables = [source for source in SOURCES if isinstance(source, TableSource)]
    if not (
        matching := [adapted for source in tables if (adapted := source.with_columns(columns))]
    ):
        raise UseError(
            f"{COLUMNS} {columns}: name the columns in the order of the file, '{LEFT_OUT}' for one "
            "that is left out, or by their names in it, such as src=from,dst=to,time=ts. Links "
            "have src,dst, and may have interval (or time) or valid_from,valid_to, layer and "
            "topic; deliveries have msg,node,prev_node,t_us (or time)"
        )
    return tuple(matching)


def find_source(name: str) -> Source:
    """Return the source of that name."""
    return next(source for source in SOURCES if source.name == name)
