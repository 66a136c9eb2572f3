"""The copy of a run in Neo4j: Arrow batches go in, nodes and relationships come of them, and all of
it is verified. `bulk.load` and `transactions.load_run` load, `remove.remove_run` removes.
"""
