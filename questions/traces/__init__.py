"""Runs written as traces of other tools."""
