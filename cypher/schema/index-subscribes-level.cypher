// The subscriptions that hold at a time, whatever the length of the history.
CREATE INDEX subscribes_level IF NOT EXISTS
FOR ()-[r:SUBSCRIBES]-() ON (r.run, r.length_class, r.valid_from)
