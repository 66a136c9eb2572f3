"""What makes Neo4j Browser show a run well: a style, saved queries, and a guide with links."""
