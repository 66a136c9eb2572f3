"""Everything that talks to Neo4j: the local server, sessions, schema, load, verify, reads, GEXF.

The driver imports numpy, pandas and pyarrow where they are installed, only to take and give their
own types, which no part of this package does: it is kept from that, so that a query starts at
once.
"""

import sys

_hidden = [name for name in ("numpy", "pandas", "pyarrow") if name not in sys.modules]
sys.modules.update(dict.fromkeys(_hidden))  # type: ignore[arg-type]
import neo4j  # noqa: E402, F401

for _name in _hidden:
    del sys.modules[_name]
