"""The systems that report, a package each."""
