"""Commands on Neo4j: its server, loads, Neo4j Browser."""
