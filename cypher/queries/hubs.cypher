// The peers with the most neighbours at a time.
//
// needs: links
//
// $run run – the run
// $at tick ticks – the time
// $levels levels($at) – where in the index periods valid at $at can begin
// $k count=10 peers – maximum number, at least 1
// $layers layers? – layers whose links count, null = all
//
// -> peer: the peer
// -> degree: distinct peers linked either way
// -> in_degree: peers that link to it
// -> out_degree: peers it links to
UNWIND $levels AS l
MATCH (a:Peer)-[r:LINK]->(b:Peer)
USING INDEX r:LINK(run, length_class, valid_from)
WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $at
  AND r.valid_to > $at
  AND ($layers IS NULL OR r.layer IN $layers)
WITH DISTINCT a, b
UNWIND [[a, b, 1], [b, a, 0]] AS end
WITH end[0] AS p, end[1] AS neighbour, end[2] AS out
WITH p, count(DISTINCT neighbour) AS degree, sum(1 - out) AS in_degree, sum(out) AS out_degree
RETURN p.name AS peer, degree, in_degree, out_degree
ORDER BY degree DESC, p.id
LIMIT $k
