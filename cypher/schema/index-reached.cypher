// The receptions of a message whose previous hop is not known.
CREATE INDEX reached_message IF NOT EXISTS
FOR ()-[r:REACHED]-() ON (r.run, r.msg)
