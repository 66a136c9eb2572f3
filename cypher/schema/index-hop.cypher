// The receptions of a message whose previous hop is known.
CREATE INDEX hop_message IF NOT EXISTS
FOR ()-[r:HOP]-() ON (r.run, r.message)
