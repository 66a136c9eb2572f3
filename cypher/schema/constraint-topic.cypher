// A topic is there once, and found by its key.
CREATE CONSTRAINT topic_key IF NOT EXISTS
FOR (n:Topic) REQUIRE n.key IS UNIQUE
