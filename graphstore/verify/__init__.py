"""Checks that the copy of a run in Neo4j equals its tables: all of it, and nothing more."""
