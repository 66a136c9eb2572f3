"""Pastry: routing by prefixes of ids on a ring. `system.Pastry` is the system."""
