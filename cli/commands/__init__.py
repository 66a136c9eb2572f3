"""A file for each command: parse, call one function of the packages, print."""
