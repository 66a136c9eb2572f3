// A shortest path along the links of the overlay at a time.
//
// needs: presence, links
// partition: $at
//
// $at tick ticks – the time
// $from peer($at) – the peer it starts at, present at $at
// $to peer($at) – the peer it ends at, present at $at
// $layers layers? – layers whose links count, null = all
//
// -> hops: links on the path, 0 from a peer to itself; no row if there is no path
// -> peers: peers on the path, from first to last
MATCH (a:Peer {key: $from})
MATCH (b:Peer {key: $to})
MATCH p = shortestPath((a)-[:LINK*0..]->(b))
WHERE all(r IN relationships(p) WHERE r.valid_from <= $at AND r.valid_to > $at
                                  AND ($layers IS NULL OR r.layer IN $layers))
RETURN length(p) AS hops, [n IN nodes(p) | n.name] AS peers
