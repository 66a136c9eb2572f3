// The peer that links to most others at a time, and one far from it among those that link to few.
//
// $run run – the run
// $at tick ticks – the time
// $levels levels($at) – where in the index periods valid at $at can begin
//
// -> peer: key of the peer
// -> far: key of the other
UNWIND $levels AS l
MATCH (a:Peer)-[r:LINK]->(b:Peer)
USING INDEX r:LINK(run, length_class, valid_from)
WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $at
  AND r.valid_to > $at
WITH a, count(DISTINCT b) AS links ORDER BY links DESC, a.id
WITH collect(a) AS linking
WITH linking[0] AS a, linking[-20..] AS others
UNWIND others AS b
OPTIONAL MATCH p = shortestPath((a)-[:LINK*0..]->(b))
WHERE all(r IN relationships(p) WHERE r.valid_from <= $at AND r.valid_to > $at)
WITH a, b, coalesce(length(p), 0) AS hops
RETURN a.key AS peer, b.key AS far
ORDER BY hops DESC, b.id
LIMIT 1
