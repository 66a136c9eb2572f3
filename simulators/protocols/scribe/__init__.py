"""Scribe: a multicast tree for each topic, on Pastry. `system.Scribe` is the system."""
