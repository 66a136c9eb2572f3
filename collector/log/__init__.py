"""The log of a collection: its records, and how damage differs from a torn write."""
