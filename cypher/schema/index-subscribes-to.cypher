// The subscriptions of a run that end in a window.
CREATE INDEX subscribes_to IF NOT EXISTS
FOR ()-[r:SUBSCRIBES]-() ON (r.run, r.valid_to)
