// The peers and links that differ between two times, whatever happened in between.
//
// needs: presence, links
//
// $run run – the run
// $before tick ticks – first time to compare
// $after tick ticks – second time to compare
// $levels_before levels($before) – where in the index periods valid at $before can begin
// $levels_after levels($after) – where in the index periods valid at $after can begin
// $layers layers? – layers whose links count, null = all
//
// -> change: added (absent at $before) or removed (absent at $after)
// -> src: peer that joined or left, or that holds the link
// -> dst: peer the link leads to, null = the peer itself joined or left
CALL () {
  UNWIND $levels_before AS l
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1]
    AND r.valid_from <= $before AND r.valid_to > $before
    AND ($layers IS NULL OR r.layer IN $layers)
  RETURN a, b, 1 AS before, 0 AS after
  UNION ALL
  UNWIND $levels_after AS l
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1]
    AND r.valid_from <= $after AND r.valid_to > $after
    AND ($layers IS NULL OR r.layer IN $layers)
  RETURN a, b, 0 AS before, 1 AS after
  UNION ALL
  UNWIND $levels_before AS l
  MATCH (a:Peer)-[s:PRESENT]->(:Run)
  USING INDEX s:PRESENT(run, length_class, valid_from)
  WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1]
    AND s.valid_from <= $before AND s.valid_to > $before
  RETURN a, null AS b, 1 AS before, 0 AS after
  UNION ALL
  UNWIND $levels_after AS l
  MATCH (a:Peer)-[s:PRESENT]->(:Run)
  USING INDEX s:PRESENT(run, length_class, valid_from)
  WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1]
    AND s.valid_from <= $after AND s.valid_to > $after
  RETURN a, null AS b, 0 AS before, 1 AS after
}
WITH a, b, max(before) AS before, max(after) AS after
WHERE before <> after
RETURN CASE after WHEN 1 THEN 'added' ELSE 'removed' END AS change, a.name AS src, b.name AS dst
ORDER BY change, b IS NOT NULL, a.id, b.id
