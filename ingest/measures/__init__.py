"""What an ingest measures: the stage of metrics, own metrics, percolation."""
