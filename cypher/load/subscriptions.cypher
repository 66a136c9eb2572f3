// Create a batch of subscriptions.
//
// $run run – the run
// $rows list<list> – [key of the peer, key of the topic, valid_from, valid_to, length_class]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (p:Peer {key: row[0]})
MATCH (t:Topic {key: row[1]})
CREATE (p)-[r:SUBSCRIBES {run: $run, valid_from: row[2], valid_to: row[3],
  length_class: row[4]}]->(t)
RETURN count(r) AS rows
