"""Metrics of a run: of its overlay, peers, topics and messages in every interval.

In: the run's tables (`vizpub.model.tables`). Out: its metrics tables. Entry:
`steps.compute_tables` (intervals, by SQL texts; messages, by `messages.message_fold.MessageFold`).
`comparison` and `figures` work on Arrow tables of finished runs.
"""
