"""What the tasks of Spark do in an ingest: rows in packs, folds, steps, and files written."""
