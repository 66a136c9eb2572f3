"""Reports by the contract of `ingest.reports`."""
