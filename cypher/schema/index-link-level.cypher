// The links alive at a time, whatever the length of the history.
CREATE INDEX link_level IF NOT EXISTS
FOR ()-[r:LINK]-() ON (r.run, r.length_class, r.valid_from)
