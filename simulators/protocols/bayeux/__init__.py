"""Bayeux: multicast trees that a topic's root grows towards its members. `system.Bayeux` is the
system.
"""
