"""The input of an ingest: which files there are, whose they are, and how they are read."""
