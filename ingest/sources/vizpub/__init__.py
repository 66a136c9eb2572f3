"""Report directories of the VizPub tool of 2014."""

from vizpub.ingest.sources.vizpub.source import Vizpub

__all__ = ["Vizpub"]
