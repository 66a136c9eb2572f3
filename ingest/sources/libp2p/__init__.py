"""Traces of go-libp2p-pubsub: JSON (`NewJSONTracer`) and protobuf (`NewPBTracer`)."""

from vizpub.ingest.sources.libp2p.source import Libp2p

__all__ = ["Libp2p"]
