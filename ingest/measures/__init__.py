"""Measurements of an ingest: the stage of metrics, own metrics, percolation."""
