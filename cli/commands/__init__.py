"""A module for each command or group of commands.

`listing.py` names those of `vizpub` itself, which are imported on use. A command takes
the global `Settings` and its own options, calls one function of a package, and prints the result.
"""
