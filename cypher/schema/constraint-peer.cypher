// A peer is there once, and found by its key.
CREATE CONSTRAINT peer_key IF NOT EXISTS
FOR (n:Peer) REQUIRE n.key IS UNIQUE
