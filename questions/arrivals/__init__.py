"""When the copies of a message come, what they cost, to whom they could have come, and by which
clocks."""

ARRIVALS = ("coverage", "duplicates", "amplification", "reachability", "clocks")
"""The names of the tables, for commands."""
