"""A run on disk: how it is written, whole or not at all, and how it is read. Needs pyarrow alone.

`writer.writing` makes a run, `store.open_run` opens its tables, `run.Run` answers in Python.
"""
