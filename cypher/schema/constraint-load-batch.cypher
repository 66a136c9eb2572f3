// A batch is loaded once: its key can be there only once.
CREATE CONSTRAINT load_batch_key IF NOT EXISTS
FOR (n:LoadBatch) REQUIRE n.key IS UNIQUE
