// Create a batch of stays of peers.
//
// $run run – the run
// $rows list<list> – [key of the peer, vf, vt, lv]
//
// -> rows: how many there are now
MATCH (run:Run {key: $run})
UNWIND $rows AS row
MATCH (p:Peer {key: row[0]})
CREATE (p)-[r:PRESENT {run: $run, vf: row[1], vt: row[2], lv: row[3]}]->(run)
RETURN count(r) AS rows
