"""Evaluations as data: TOML files with systems, settings and published values.

In: an experiment's name or file (`definition.read`). Out: simulated and ingested runs
(`runs.make`) and a report that compares them with the published values (`report.write_report`).
"""
