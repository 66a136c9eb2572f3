// Create a batch of subscriptions.
//
// $run run – the run
// $rows list<list> – [key of the peer, key of the topic, vf, vt, lv]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (p:Peer {key: row[0]})
MATCH (t:Topic {key: row[1]})
CREATE (p)-[r:SUBSCRIBES {run: $run, vf: row[2], vt: row[3], lv: row[4]}]->(t)
RETURN count(r) AS rows
