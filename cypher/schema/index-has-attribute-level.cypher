// The values of attributes at a time, whatever the length of the history.
CREATE INDEX has_attribute_level IF NOT EXISTS
FOR ()-[r:HAS_ATTRIBUTE]-() ON (r.run, r.length_class, r.valid_from)
