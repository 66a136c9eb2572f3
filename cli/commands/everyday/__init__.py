"""Commands for every day: ingest, ask, look, compare, export."""
