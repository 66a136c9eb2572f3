// The copies of links in a partition, whose type stands for LINK_P0.
//
// $run run – the run
//
// -> id: of the copy
// -> row: as a load writes it
MATCH (a:Peer)-[r:LINK_P0]->(b:Peer)
WHERE r.run = $run
RETURN elementId(r) AS id, [a.key, b.key, type(r), r.layer, r.topic, r.topic_name, r.valid_from,
       r.valid_to, r.length_class] AS row
