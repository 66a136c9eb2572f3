"""Reports by the contract of `vizpub.reports.files`: lines of JSON, or Parquet."""
