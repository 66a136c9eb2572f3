// Create a batch of links.
//
// $run run – the run
// $rows list<list> – [src's key, dst's key, layer, topic, its name, bounds, length_class]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (a:Peer {key: row[0]})
MATCH (b:Peer {key: row[1]})
CREATE (a)-[r:LINK {run: $run, layer: row[2], topic: row[3], topic_name: row[4],
                    valid_from: row[5], valid_to: row[6], length_class: row[7]}]->(b)
RETURN count(r) AS rows
