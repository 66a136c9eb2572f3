"""Scribe: a multicast tree for each topic, on Pastry."""
