"""The sources there are, in the order in which they are asked whether a file is theirs."""

from ingest.sources.base import Source
from ingest.sources.libp2p import Libp2p

SOURCES: tuple[Source, ...] = (Libp2p(),)
