"""Sums over a run."""
