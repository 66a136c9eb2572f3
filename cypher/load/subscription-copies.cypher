// Create a batch of copies of subscriptions, of the types of their partitions.
//
// $run run – the run
// $rows list<list> – [key of the peer, key of the topic, type, valid_from, valid_to, length_class]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (p:Peer {key: row[0]})
MATCH (t:Topic {key: row[1]})
CREATE (p)-[r:$(row[2]) {run: $run, valid_from: row[3], valid_to: row[4],
  length_class: row[5]}]->(t)
RETURN count(r) AS rows
