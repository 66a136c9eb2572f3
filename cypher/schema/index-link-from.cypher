// The links of a run, and those that begin in a window.
CREATE INDEX link_from IF NOT EXISTS
FOR ()-[r:LINK]-() ON (r.run, r.valid_from)
