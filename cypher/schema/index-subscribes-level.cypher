// The subscriptions that hold at a time, whatever the length of the history.
CREATE INDEX subscribes_level IF NOT EXISTS
FOR ()-[r:SUBSCRIBES]-() ON (r.run, r.lv, r.vf)
