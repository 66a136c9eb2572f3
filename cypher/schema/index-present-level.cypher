// The peers present at a time, whatever the length of the history.
CREATE INDEX present_level IF NOT EXISTS
FOR ()-[r:PRESENT]-() ON (r.run, r.length_class, r.valid_from)
