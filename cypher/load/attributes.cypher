// Create a batch of the values of peers' attributes.
//
// $run run – the run
// $rows list<list> – [key of the peer, attribute, value, number, bounds, length_class]
//
// -> rows: how many there are now
MATCH (run:Run {key: $run})
UNWIND $rows AS row
MATCH (p:Peer {key: row[0]})
CREATE (p)-[r:HAS_ATTRIBUTE {run: $run, key: row[1], value: row[2], number: row[3],
  valid_from: row[4], valid_to: row[5], length_class: row[6]}]->(run)
RETURN count(r) AS rows
