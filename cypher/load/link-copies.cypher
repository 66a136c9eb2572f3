// Create a batch of copies of links, of the types of their partitions.
//
// $run run – the run
// $rows list<list> – [src's key, dst's key, type, layer, topic, its name, bounds, length_class]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (a:Peer {key: row[0]})
MATCH (b:Peer {key: row[1]})
CREATE (a)-[r:$(row[2]) {run: $run, layer: row[3], topic: row[4], topic_name: row[5],
                         valid_from: row[6], valid_to: row[7], length_class: row[8]}]->(b)
RETURN count(r) AS rows
