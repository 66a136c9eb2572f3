"""Magnet: Scribe's trees on a small world in which peers of like interests are near each other.
`system.Magnet` is the system.
"""
