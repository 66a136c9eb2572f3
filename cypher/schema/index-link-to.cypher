// The links of a run that end in a window.
CREATE INDEX link_to IF NOT EXISTS
FOR ()-[r:LINK]-() ON (r.run, r.valid_to)
