"""GEXF 1.3 files for Gephi out of a loaded run; begins in `export`."""
