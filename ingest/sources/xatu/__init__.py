"""Xatu's tables of libp2p events, as Parquet."""

from vizpub.ingest.sources.xatu.source import Xatu

__all__ = ["Xatu"]
