// The receptions of a message whose previous hop is not known.
CREATE INDEX arrived_from_unknown_message IF NOT EXISTS
FOR ()-[r:ARRIVED_FROM_UNKNOWN]-() ON (r.run, r.message)
