"""What all packages share: errors, the clock, tables and metrics; `jvm` finds Java and its jars.

`tables.table` gives the definition of a table.
"""
