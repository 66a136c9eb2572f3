"""The channel simulator (Bose 1999): every assignment with every mapping and scheduler.

Nothing is reported: the compiled pipeline counts, so thousands of runs take minutes.
"""

NAME = "channels"
TITLE = "Broadcast channels: assignments, mappings and schedulers (Bose 1999)"
