"""Simulated systems whose peers write reports, in virtual time.

In: a plan (system, world, seed; `engine.plan.planned`). Out: a folder of reports for `ingest`.
Entry: `engine.simulation.simulate`. `world` models churn, latency and workload; `protocols` has the
systems.
"""
