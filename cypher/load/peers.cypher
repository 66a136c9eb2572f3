// Create a batch of peers.
//
// $rows list<map> – the properties of each
//
// -> rows: how many there are now
UNWIND $rows AS row
CREATE (n:Peer)
SET n = row
RETURN count(n) AS rows
