// The overlay at a time: its links, one row per pair of peers, and the peers without links.
//
// needs: presence, links
//
// $run run – the run
// $at tick ticks – the time
// $levels levels($at) – where in the index periods valid at $at can begin
// $layers layers? – layers whose links count, null = all
//
// -> src: peer that holds the link, or a peer without links
// -> dst: peer it leads to, null = src has no link in or out
// -> layers: layers of the links from src to dst
// -> topics: topics that they serve
CALL () {
  UNWIND $levels AS l
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $at
    AND r.valid_to > $at
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH a, b, r ORDER BY r.topic_name
  WITH a, b, collect(DISTINCT r.layer) AS layers, collect(DISTINCT r.topic_name) AS topics
  WITH a, b, COLLECT { UNWIND layers AS layer RETURN layer ORDER BY layer } AS layers, topics
  RETURN collect([a, b, layers, topics]) AS links
}
CALL (links) {
  UNWIND links AS link
  UNWIND link[0..2] AS p
  RETURN collect(DISTINCT p) AS linked
}
CALL (links, linked) {
  UNWIND links AS link
  RETURN link[0] AS a, link[1] AS b, link[2] AS layers, link[3] AS topics
  UNION ALL
  UNWIND $levels AS l
  MATCH (a:Peer)-[s:PRESENT]->(:Run)
  USING INDEX s:PRESENT(run, length_class, valid_from)
  WHERE s.run = $run AND s.length_class = l[0] AND s.valid_from > l[1] AND s.valid_from <= $at
    AND s.valid_to > $at
    AND NOT a IN linked
  RETURN DISTINCT a, null AS b, [] AS layers, [] AS topics
}
RETURN a.name AS src, b.name AS dst, layers, topics
ORDER BY a.id, b.id
