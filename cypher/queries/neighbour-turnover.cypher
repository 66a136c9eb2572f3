// How far the neighbours of each peer are the same at two times: those that changed most first.
// Peers that are not present at both times, or have no neighbour at either, are left out.
//
// needs: presence, links
//
// $run run – the run
// $before tick ticks – first time to compare
// $after tick ticks – second time to compare
// $levels_before levels($before) – where in the index periods valid at $before can begin
// $levels_after levels($after) – where in the index periods valid at $after can begin
// $k count=10 peers – maximum number, at least 1
// $layers layers? – layers whose links count, null = all
//
// -> peer: the peer
// -> before: distinct peers to which it holds links at $before
// -> after: distinct peers to which it holds links at $after
// -> stayed: those at both times
// -> jaccard: stayed / distinct peers at either time
CALL () {
  UNWIND $levels_before AS l
  MATCH (p:Peer)-[r:LINK]->(neighbour:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1]
    AND r.valid_from <= $before AND r.valid_to > $before
    AND ($layers IS NULL OR r.layer IN $layers)
  RETURN p, neighbour, 1 AS before, 0 AS after, 0 AS present
  UNION ALL
  UNWIND $levels_after AS l
  MATCH (p:Peer)-[r:LINK]->(neighbour:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1]
    AND r.valid_from <= $after AND r.valid_to > $after
    AND ($layers IS NULL OR r.layer IN $layers)
  RETURN p, neighbour, 0 AS before, 1 AS after, 0 AS present
  UNION ALL
  UNWIND $levels_before AS l
  MATCH (p:Peer)-[s:PRESENT]->(:Run)
  USING INDEX s:PRESENT(run, length_class, valid_from)
  WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1]
    AND s.valid_from <= $before AND s.valid_to > $before
  RETURN DISTINCT p, null AS neighbour, 0 AS before, 0 AS after, 1 AS present
  UNION ALL
  UNWIND $levels_after AS l
  MATCH (p:Peer)-[s:PRESENT]->(:Run)
  USING INDEX s:PRESENT(run, length_class, valid_from)
  WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1]
    AND s.valid_from <= $after AND s.valid_to > $after
  RETURN DISTINCT p, null AS neighbour, 0 AS before, 0 AS after, 1 AS present
}
WITH p, neighbour, max(before) AS before, max(after) AS after, sum(present) AS present
WITH p, sum(before) AS before, sum(after) AS after, sum(before * after) AS stayed,
     sum(present) AS present
WHERE present = 2 AND before + after > 0
RETURN p.name AS peer, before, after, stayed,
       toFloat(stayed) / (before + after - stayed) AS jaccard
ORDER BY jaccard, p.id
LIMIT $k
