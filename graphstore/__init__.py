"""Everything that speaks Neo4j: the local server, sessions, schema, load, verify, reads, GEXF.

The driver imports pandas where it is installed, only to take and give pandas' own types,
which no part of this package does: it is kept from that, so that a query starts at once.
"""

import sys

if "pandas" not in sys.modules:
    sys.modules["pandas"] = None  # type: ignore[assignment]
    import neo4j  # noqa: F401

    del sys.modules["pandas"]
