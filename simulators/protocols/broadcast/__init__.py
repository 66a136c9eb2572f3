"""Broadcasts to all peers of an overlay, on any membership."""
