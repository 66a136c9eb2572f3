// An interval is there once, and found by its key.
CREATE CONSTRAINT interval_key IF NOT EXISTS
FOR (n:Interval) REQUIRE n.key IS UNIQUE
