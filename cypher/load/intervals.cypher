// Create a batch of intervals.
//
// $rows list<map> – the properties of each
//
// -> rows: how many there are now
UNWIND $rows AS row
CREATE (n:Interval)
SET n = row
RETURN count(n) AS rows
