// Create a batch of roles that peers play for a topic, or in the run where it is for none.
//
// $run run – the run
// $rows list<list> – [key of the peer, key of the topic or null, role, valid_from, valid_to]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (p:Peer {key: row[0]})
OPTIONAL MATCH (t:Topic {key: row[1]})
OPTIONAL MATCH (whole:Run {key: $run})
WITH p, CASE WHEN row[1] IS NULL THEN whole ELSE t END AS of, row
WHERE of IS NOT NULL
CREATE (p)-[r:HAS_ROLE {run: $run, role: row[2], valid_from: row[3], valid_to: row[4]}]->(of)
RETURN count(r) AS rows
