"""Traces of ethp2p's simulator, which netviz plays (bctrace)."""
