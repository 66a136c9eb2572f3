"""SpiderCast: neighbours that cover the topics of a peer. `system.SpiderCast` is the system."""
