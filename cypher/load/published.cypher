// Link a batch of messages to their publishers.
//
// $run run – the run
// $rows list<list> – [key of the publisher, key of the message]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (p:Peer {key: row[0]})
MATCH (m:Message {key: row[1]})
CREATE (p)-[r:PUBLISHED {run: $run}]->(m)
RETURN count(r) AS rows
