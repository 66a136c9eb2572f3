"""A module for each command or group of commands.

`register` of each module adds its commands to the application (`vizpub.cli.main`). A command takes
the global `Settings` and its own options, calls one function of a package, and prints the result.
"""
