// The peers whose number of neighbours changed most from one time to another.
// Peers that are not present at both times are left out.
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
// -> before: distinct peers linked either way at $before
// -> after: distinct peers linked either way at $after
// -> change: after - before; largest absolute value first
CALL () {
  UNWIND $levels_before AS l
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1]
    AND r.valid_from <= $before AND r.valid_to > $before
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH DISTINCT a, b
  UNWIND [[a, b], [b, a]] AS end
  WITH end[0] AS p, end[1] AS neighbour
  RETURN p, count(DISTINCT neighbour) AS before, 0 AS after, 0 AS present
  UNION ALL
  UNWIND $levels_after AS l
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1]
    AND r.valid_from <= $after AND r.valid_to > $after
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH DISTINCT a, b
  UNWIND [[a, b], [b, a]] AS end
  WITH end[0] AS p, end[1] AS neighbour
  RETURN p, 0 AS before, count(DISTINCT neighbour) AS after, 0 AS present
  UNION ALL
  UNWIND $levels_before AS l
  MATCH (p:Peer)-[s:PRESENT]->(:Run)
  USING INDEX s:PRESENT(run, length_class, valid_from)
  WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1]
    AND s.valid_from <= $before AND s.valid_to > $before
  RETURN DISTINCT p, 0 AS before, 0 AS after, 1 AS present
  UNION ALL
  UNWIND $levels_after AS l
  MATCH (p:Peer)-[s:PRESENT]->(:Run)
  USING INDEX s:PRESENT(run, length_class, valid_from)
  WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1]
    AND s.valid_from <= $after AND s.valid_to > $after
  RETURN DISTINCT p, 0 AS before, 0 AS after, 1 AS present
}
WITH p, sum(before) AS before, sum(after) AS after, sum(present) AS present
WHERE before <> after AND present = 2
RETURN p.name AS peer, before, after, after - before AS change
ORDER BY abs(change) DESC, p.id
LIMIT $k
