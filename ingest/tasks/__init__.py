"""Work of Spark tasks in an ingest: rows in packs, folds, steps, and files written."""
