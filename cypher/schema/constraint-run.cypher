// A run is there once, and found by its key.
CREATE CONSTRAINT run_key IF NOT EXISTS
FOR (n:Run) REQUIRE n.key IS UNIQUE
