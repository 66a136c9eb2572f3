// Create a batch of receptions whose previous hop is known.
//
// $run run – the run
// $rows list<list> – [key of previous hop, key of peer, message, hop, time_us, first, subscribed]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (a:Peer {key: row[0]})
MATCH (b:Peer {key: row[1]})
CREATE (a)-[r:HOP {run: $run, message: row[2], hops: row[3], time_us: row[4], first: row[5],
                   subscribed: row[6]}]->(b)
RETURN count(r) AS rows
