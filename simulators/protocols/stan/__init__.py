"""StAN: an overlay for each topic, which share links. `system.StAN` is the system."""
