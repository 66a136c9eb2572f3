"""When the copies of a message come, to whom they could have come, and by which clocks."""

ARRIVALS = ("coverage", "duplicates", "reachability", "clocks")
"""The names of the tables, for commands."""
