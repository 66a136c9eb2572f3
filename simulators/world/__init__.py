"""The environment of a system: churn, latencies, subscriptions and publications.

In: lines such as `zipf:topics=200` (`engine.specs.parse`). Out: sessions, delays, subscriptions and
planned publications of one run.
"""
