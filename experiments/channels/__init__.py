"""The channel simulator (Bose 1999): every assignment with every mapping and scheduler.

Nothing is reported: the compiled pipeline counts, so thousands of runs take minutes.
"""
