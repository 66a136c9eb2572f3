"""Traces of go-libp2p-pubsub: JSON (`NewJSONTracer`) and protobuf (`NewPBTracer`)."""
