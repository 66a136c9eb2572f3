"""PolderCast: CYCLON, VICINITY and a ring for each topic. `system.PolderCast` is the system."""
