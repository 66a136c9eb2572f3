"""How long links, peers and subscriptions last, and how neighbourhoods change."""

LENGTHS = ("lifetimes", "survival")
"""The names of the tables of lengths, for commands."""
CHURN = (*LENGTHS, "turnover")
"""The names of all tables."""
