"""Pastry: routing by prefixes of ids on a ring."""
