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
UNWIND [l IN coalesce(run.levels, []) WHERE l < 63 | [l, $at - 2 ^ (l + 1)]] + [[63, -1]] AS l
MATCH (p:Peer)-[s:PRESENT]->(:Run)
USING INDEX s:PRESENT(run, lv, vf)
WHERE s.run = $run AND s.lv = l[0] AND s.vf > l[1] AND s.vf <= $at AND s.vt > $at
WITH DISTINCT p ORDER BY p.id LIMIT $peers
WITH collect(p) AS drawn
UNWIND drawn AS peer
RETURN peer, COLLECT {
  MATCH (peer)-[r:LINK]->(b:Peer)
  WHERE r.vf <= $at AND r.vt > $at AND b IN drawn AND ($layers IS NULL OR r.layer IN $layers)
  WITH b, min(elementId(r)) AS id, collect(r) AS lives
  RETURN [r IN lives WHERE elementId(r) = id][0]
} AS links
