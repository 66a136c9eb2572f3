"""Neo4j servers: the workspace's own and containers; how to reach one, and sessions."""
