"""daMulticast: gossip up a hierarchy of topics. `system.DaMulticast` is the system."""
