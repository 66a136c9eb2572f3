"""Everything that talks to Neo4j: the local server, sessions, schema, load, verify, reads, GEXF."""
