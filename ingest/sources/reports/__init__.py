"""Reports by the contract of `vizpub.ingest.reports.files`: lines of JSON, or Parquet."""

from vizpub.ingest.sources.reports.source import Reports

__all__ = ["Reports"]
