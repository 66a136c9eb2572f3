// The stays of a run, and those that begin in a window.
CREATE INDEX present_from IF NOT EXISTS
FOR ()-[r:PRESENT]-() ON (r.run, r.valid_from)
