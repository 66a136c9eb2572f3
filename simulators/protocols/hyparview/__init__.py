"""HyParView: a small symmetric view to send on, and a large one for repairs. `system.HyParView` is
the system."""
