// The copies of subscriptions in a partition, whose type stands for SUBSCRIBES_P0.
//
// $run run – the run
//
// -> id: of the copy
// -> row: as a load writes it
MATCH (p:Peer)-[r:SUBSCRIBES_P0]->(t:Topic)
WHERE r.run = $run
RETURN elementId(r) AS id, [p.key, t.key, type(r), r.valid_from, r.valid_to, r.length_class] AS row
