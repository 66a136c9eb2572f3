"""Chord: a ring of ids with fingers across it. `system.Chord` is the system."""
