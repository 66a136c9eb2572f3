"""Quasar: random walks, directed where members are near. `system.Quasar` is the system."""
