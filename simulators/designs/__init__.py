"""Overlays that are constructed from all subscriptions at once, not grown by their peers."""
