// Create a batch of messages.
//
// $rows list<map> – the properties of each
//
// -> rows: how many there are now
UNWIND $rows AS row
CREATE (n:Message)
SET n = row
RETURN count(n) AS rows
