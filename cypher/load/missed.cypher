// Link a batch of messages to the peers that they should have reached and never did.
//
// $run run – the run
// $rows list<list> – [key of the message, key of the peer]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (m:Message {key: row[0]})
MATCH (p:Peer {key: row[1]})
CREATE (m)-[r:MISSED {run: $run}]->(p)
RETURN count(r) AS rows
