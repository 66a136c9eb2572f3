"""Definitions that all packages share: errors, the clock, tables and metrics.

`tables.table` gives the definition of a table.
"""
