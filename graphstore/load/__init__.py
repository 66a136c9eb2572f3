"""The copy of a run in Neo4j: Arrow batches go in, nodes and relationships come of them.
`bulk.load` and `transactions.load_run` load, `remove.remove_run` removes.
"""
