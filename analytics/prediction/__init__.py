"""How far gossip should spread: by message passing, and by generating functions."""
