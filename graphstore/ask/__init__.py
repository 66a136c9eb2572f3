"""Questions to a loaded run: the shipped queries, the user's own Cypher, and reads in bulk.

Names and texts go in, rows come out; `queries.ask` and `free_text.free_text` are the entries.
"""
