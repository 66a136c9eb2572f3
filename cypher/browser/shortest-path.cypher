// A shortest path along the links of the overlay at a time.
//
// needs: presence, links
//
// $at tick ticks – the time
// $from peer($at) – the peer it starts at
// $to peer($at) – the peer it ends at
// $layers layers? – layers whose links count, null = all
//
// -> p: the path; no row where there is none
MATCH (a:Peer {key: $from})
MATCH (b:Peer {key: $to})
MATCH p = shortestPath((a)-[:LINK*0..]->(b))
WHERE all(r IN relationships(p) WHERE r.valid_from <= $at AND r.valid_to > $at
                                  AND ($layers IS NULL OR r.layer IN $layers))
RETURN p
