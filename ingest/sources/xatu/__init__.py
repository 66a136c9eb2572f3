"""Xatu's tables of libp2p events, as Parquet."""
