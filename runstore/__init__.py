"""A run on disk: how it is written, completely or not at all, and opened. Needs only pyarrow.

`writer.writing` makes a run, `store.open_run` opens its tables.
"""
