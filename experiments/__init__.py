"""Evaluations as data: TOML files with what was published, and what runs them."""
