// The neighbours of a peer at a time, in either direction.
//
// needs: presence, links
// partition: $at
//
// $at tick ticks – the time
// $peer peer($at) – the peer, present at $at
// $layers layers? – layers whose links count, null = all
//
// -> neighbour: the other peer
// -> links_to: the peer holds a link to it
// -> linked_from: it holds a link to the peer
// -> layers: layers of the links between them
// -> topics: topics that they serve
MATCH (p:Peer {key: $peer})-[r:LINK]-(n:Peer)
WHERE r.valid_from <= $at AND r.valid_to > $at AND ($layers IS NULL OR r.layer IN $layers)
WITH p, n, r ORDER BY r.topic_name
WITH n, max(CASE WHEN startNode(r) = p THEN 1 ELSE 0 END) AS to,
     max(CASE WHEN startNode(r) = p THEN 0 ELSE 1 END) AS from,
     collect(DISTINCT r.layer) AS layers, collect(DISTINCT r.topic_name) AS topics
WITH n, to, from, topics,
     COLLECT { UNWIND layers AS layer RETURN layer ORDER BY layer } AS layers
RETURN n.name AS neighbour, to = 1 AS links_to, from = 1 AS linked_from, layers, topics
ORDER BY n.id
