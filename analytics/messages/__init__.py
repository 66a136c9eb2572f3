"""Metrics of messages: arrivals, hops, eligible peers, deliveries, delays."""
