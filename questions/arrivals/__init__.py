"""When the copies of a message come, and to whom they could have come."""

ARRIVALS = ("coverage", "duplicates", "reachability")
"""The names of the tables, for commands."""
