"""Workspaces in object stores: their objects, the copies here, and who writes."""
