"""Tabular input: delimited text and Parquet, judged column by column."""
