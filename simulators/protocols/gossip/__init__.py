"""Gossip that knows its neighbours' subscriptions, on a given topology (Ferretti 2012)."""
