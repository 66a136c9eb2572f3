"""The world that systems live in: who is up when, latencies, subscriptions, publications."""
