// The indexes that there are, those of constraints among them.
//
// -> of: the label or type
// -> properties: what is looked up
// -> unique: whether a constraint has it
// -> state: ONLINE = it answers
SHOW INDEXES YIELD type, labelsOrTypes, properties, owningConstraint, state
WHERE type = 'RANGE'
RETURN labelsOrTypes[0] AS of, properties, owningConstraint IS NOT NULL AS unique, state
