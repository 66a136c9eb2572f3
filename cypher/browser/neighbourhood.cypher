// A peer at a time, its neighbours, and the links among them.
//
// needs: presence, links
//
// $at tick ticks – the time
// $peer peer($at) – the peer
// $layers layers? – layers whose links count, null = all
// $peers count=60 peers – how many to draw at most
//
// -> peer: the peer, or one of its neighbours
// -> links: to others of them, one for each of them
MATCH (p:Peer {key: $peer})
OPTIONAL MATCH (p)-[r:LINK]-(n:Peer)
WHERE r.valid_from <= $at AND r.valid_to > $at AND ($layers IS NULL OR r.layer IN $layers)
WITH DISTINCT p, n ORDER BY n.id LIMIT $peers
WITH p, collect(n) AS neighbours
WITH [p] + neighbours AS drawn
UNWIND drawn AS peer
RETURN peer, COLLECT {
  MATCH (peer)-[r:LINK]->(b:Peer)
  WHERE r.valid_from <= $at AND r.valid_to > $at AND b IN drawn
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH b, min(elementId(r)) AS id, collect(r) AS links
  RETURN [r IN links WHERE elementId(r) = id][0]
} AS links
