// Create a batch of topics.
//
// $rows list<map> – the properties of each
//
// -> rows: how many there are now
UNWIND $rows AS row
CREATE (n:Topic)
SET n = row
RETURN count(n) AS rows
