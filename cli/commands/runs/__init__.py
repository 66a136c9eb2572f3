"""Commands on the runs of a workspace."""
