"""Commands on runs that are collected from running peers."""
