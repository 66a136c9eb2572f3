"""The systems, a package each. Each has a class `engine.network.System` in its `system` module."""
