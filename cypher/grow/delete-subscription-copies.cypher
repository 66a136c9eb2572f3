// Delete copies of subscriptions in a partition, whose type stands for SUBSCRIBES_P0.
//
// $rows list<list> – as a load writes them
UNWIND $rows AS row
MATCH (:Peer {key: row[0]})-[r:SUBSCRIBES_P0]->(:Topic {key: row[1]})
WHERE r.valid_from = row[3] AND r.valid_to = row[4]
DELETE r
