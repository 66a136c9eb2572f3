"""Vitis: clusters of peers of like interests, joined by relays. `system.Vitis` is the system."""
