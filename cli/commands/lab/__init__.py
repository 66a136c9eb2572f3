"""Commands that simulate and construct overlays, and run experiments."""
