"""Metrics of a run: of its overlay, peers, topics and messages in every interval.

In: DataFrames of the run's tables (`model.tables`). Out: DataFrames of its metrics tables.
Entry: `engines.measure` (structure), `message_fold.MessageFold` (messages), `summaries` (tables).
`comparison` and `figures` work on Arrow tables of finished runs.
"""
