// Give peers other properties.
//
// $rows list<map> – the properties of each
//
// -> rows: how many were there
UNWIND $rows AS row
MATCH (n:Peer {key: row.key})
SET n = row
RETURN count(n) AS rows
