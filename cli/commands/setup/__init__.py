"""Commands on the installation: settings, checks, sessions."""
