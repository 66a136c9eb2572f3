// The overlay at a time: its first peers, by number, and the links between them.
//
// needs: presence, links
//
// $run run – the run
// $at tick ticks – the time
// $layers layers? – layers whose links count, null = all
// $peers count=60 peers – how many to draw at most
//
// -> peer: a peer that is present
// -> links: to others of the peers, one for each of them
MATCH (run:Run {key: $run})
UNWIND [[63, -1]] + [l IN coalesce(run.levels, []) WHERE l < 63 | [l, $at - 2 ^ (l + 1)]] AS l
MATCH (p:Peer)-[s:PRESENT]->(:Run)
USING INDEX s:PRESENT(run, length_class, valid_from)
WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1] AND s.valid_from <= $at
  AND s.valid_to > $at
WITH DISTINCT p ORDER BY p.id LIMIT $peers
WITH collect(p) AS drawn
UNWIND drawn AS peer
RETURN peer, COLLECT {
  MATCH (peer)-[r:LINK]->(b:Peer)
  WHERE r.valid_from <= $at AND r.valid_to > $at AND b IN drawn
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH b, min(elementId(r)) AS id, collect(r) AS links
  RETURN [r IN links WHERE elementId(r) = id][0]
} AS links
