"""The page in which people look at runs, and the server that answers it (docs/explore.md)."""
