"""PolderCast: CYCLON, VICINITY and a ring for each topic."""
