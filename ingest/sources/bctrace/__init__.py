"""Traces of ethp2p's simulator, which netviz plays (bctrace)."""

from vizpub.ingest.sources.bctrace.source import Bctrace

__all__ = ["Bctrace"]
