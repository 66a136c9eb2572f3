"""From the log to the run: batches, the process that appends them, and the copy in Neo4j."""
