"""Reports by the contract of `vizpub.reports.files`: lines of JSON, or Parquet."""

from vizpub.ingest.sources.reports.source import Reports

__all__ = ["Reports"]
