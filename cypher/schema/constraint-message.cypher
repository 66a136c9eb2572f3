// A message is there once, and found by its key.
CREATE CONSTRAINT message_key IF NOT EXISTS
FOR (n:Message) REQUIRE n.key IS UNIQUE
