// The stays of a run that end in a window.
CREATE INDEX present_to IF NOT EXISTS
FOR ()-[r:PRESENT]-() ON (r.run, r.valid_to)
