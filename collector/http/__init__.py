"""The HTTP interface of a collector, with its bounds, and the client that asks a running one."""
