// All shortest paths along the links of the overlay at a time.
//
// needs: presence, links
// partition: $at
//
// $at tick ticks – the time
// $from peer($at) – the peer they start at, present at $at
// $to peer($at) – the peer they end at, present at $at
// $layers layers? – layers whose links count, null = all
//
// -> hops: links on the path, 0 from a peer to itself; no row if there is no path
// -> peers: peers on the path, from first to last; each sequence of peers once
MATCH (a:Peer {key: $from})
MATCH (b:Peer {key: $to})
MATCH p = allShortestPaths((a)-[:LINK*0..]->(b))
WHERE all(r IN relationships(p) WHERE r.valid_from <= $at AND r.valid_to > $at
                                  AND ($layers IS NULL OR r.layer IN $layers))
WITH DISTINCT nodes(p) AS peers
RETURN size(peers) - 1 AS hops, [n IN peers | n.name] AS peers
ORDER BY peers
