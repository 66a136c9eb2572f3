// Add metrics to a batch of messages.
//
// $rows list<map> – the key and the metrics of each
//
// -> rows: how many were there
UNWIND $rows AS row
MATCH (n:Message {key: row.key})
SET n += row
RETURN count(n) AS rows
