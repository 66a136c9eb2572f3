// Create a batch of presence periods.
//
// $run run – the run
// $rows list<list> – [key of the peer, valid_from, valid_to, length_class]
//
// -> rows: how many there are now
MATCH (run:Run {key: $run})
UNWIND $rows AS row
MATCH (p:Peer {key: row[0]})
CREATE (p)-[r:PRESENT {run: $run, valid_from: row[1], valid_to: row[2],
  length_class: row[3]}]->(run)
RETURN count(r) AS rows
