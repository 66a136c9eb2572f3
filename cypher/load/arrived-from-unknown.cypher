// Create a batch of receptions whose previous hop is not known.
//
// $run run – the run
// $rows list<list> – [key of message, key of peer, message, hop, time_us, first, subscribed]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (m:Message {key: row[0]})
MATCH (p:Peer {key: row[1]})
CREATE (m)-[r:ARRIVED_FROM_UNKNOWN {run: $run, message: row[2], hops: row[3], time_us: row[4],
  first: row[5],
                       subscribed: row[6]}]->(p)
RETURN count(r) AS rows
