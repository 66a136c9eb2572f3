"""Publish/subscribe of libp2p: floodsub and gossipsub, on connections that peers open."""
