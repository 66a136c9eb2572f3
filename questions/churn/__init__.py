"""How long links, peers and subscriptions last, and how neighbourhoods change."""
