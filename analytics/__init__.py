"""Metrics of a run: of its overlay, peers, topics and messages in every interval.

In: the run's tables (`vizpub.model.tables`). Out: its metrics tables. Entry: `engines.measure`
(structure), `messages.message_fold.MessageFold` (messages), `steps.compute` (intervals, by SQL
texts). `comparison` and `figures` work on Arrow tables of finished runs.
"""
