"""Reports by the contract of `ingest.reports.files`: lines of JSON, or Parquet."""

from ingest.sources.reports.source import Reports

__all__ = ["Reports"]
