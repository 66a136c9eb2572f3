// The links valid at a time or in a window, whatever the length of the history.
CREATE INDEX link_level IF NOT EXISTS
FOR ()-[r:LINK]-() ON (r.run, r.length_class, r.valid_from)
