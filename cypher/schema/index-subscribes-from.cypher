// The subscriptions of a run, and those that begin in a window.
CREATE INDEX subscribes_from IF NOT EXISTS
FOR ()-[r:SUBSCRIBES]-() ON (r.run, r.valid_from)
