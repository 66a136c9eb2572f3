// Add metrics to a batch of intervals.
//
// $rows list<map> – the key and the metrics of each
//
// -> rows: how many were there
UNWIND $rows AS row
MATCH (n:Interval {key: row.key})
SET n += row
RETURN count(n) AS rows
