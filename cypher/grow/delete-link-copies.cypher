// Delete copies of links in a partition, whose type stands for LINK_P0.
//
// $rows list<list> – as a load writes them
UNWIND $rows AS row
MATCH (:Peer {key: row[0]})-[r:LINK_P0]->(:Peer {key: row[1]})
WHERE r.layer = row[3] AND coalesce(r.topic, -1) = coalesce(row[4], -1) AND r.valid_from = row[6]
  AND r.valid_to = row[7]
DELETE r
