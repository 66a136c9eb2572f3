"""Evaluations as data: TOML files with systems, settings and published values.

In: an experiment's name or file (`definition.read_experiment`). Out: simulated and ingested runs
(`runs.make_runs`) and a report that compares them with the published values
(`report.write_report`).
"""
