// The overlay at a time as nodes and relationships, for what draws or walks these.
//
// needs: presence, links
//
// $run run – the run
// $at tick ticks – the time
// $levels levels($at) – where in the index periods valid at $at can begin
// $layers layers? – layers whose links count, null = all
//
// -> peer: node of a peer that is present, null in the rows of links
// -> link: relationship from peer to peer, null in the rows of peers
CALL () {
  UNWIND $levels AS l
  MATCH (p:Peer)-[s:PRESENT]->(:Run)
  USING INDEX s:PRESENT(run, length_class, valid_from)
  WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1] AND s.valid_from <= $at
    AND s.valid_to > $at
  RETURN DISTINCT p AS peer, null AS link
  UNION ALL
  UNWIND $levels AS l
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $at
    AND r.valid_to > $at
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH a, b, r.layer AS layer, r.topic AS topic, collect(r) AS links
  RETURN null AS peer, links[0] AS link
}
RETURN peer, link
