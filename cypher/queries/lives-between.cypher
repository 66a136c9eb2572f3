// Lives that touch a stretch of time, from a time to another and the moment of that too.
//
// $run run – the run
// $from tick ticks – begin of the stretch, inclusive
// $to tick($from) ticks – its end, inclusive
// $levels levels($from) – where in the index spans alive at $from can begin
// $kinds kinds? – links, subscriptions or presence, null = all that the run knows
// $layers layers? – layers of links to look at, null = all
//
// -> kind: links, subscriptions or presence
// -> peer: that holds the link, subscribes or is present
// -> other: the peer it links to or the topic it subscribes to, null = it is a stay
// -> layer: of the link
// -> topic: that the link serves, null = none
// -> valid_from: tick at which it begins
// -> valid_to: tick at which it ends, null = it does not
CALL () {
  WITH 'links' AS kind
  WHERE $kinds IS NULL OR kind IN $kinds
  UNWIND $levels AS l
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $to
    AND r.valid_to > $from
    AND ($layers IS NULL OR r.layer IN $layers)
  RETURN kind, a, b, r
  UNION ALL
  WITH 'subscriptions' AS kind
  WHERE $kinds IS NULL OR kind IN $kinds
  UNWIND $levels AS l
  MATCH (a:Peer)-[r:SUBSCRIBES]->(b:Topic)
  USING INDEX r:SUBSCRIBES(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $to
    AND r.valid_to > $from
  RETURN kind, a, b, r
  UNION ALL
  WITH 'presence' AS kind
  WHERE $kinds IS NULL OR kind IN $kinds
  UNWIND $levels AS l
  MATCH (a:Peer)-[r:PRESENT]->(:Run)
  USING INDEX r:PRESENT(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $to
    AND r.valid_to > $from
  RETURN kind, a, null AS b, r
}
RETURN kind, a.name AS peer, b.name AS other, r.layer AS layer, r.topic_name AS topic,
       r.valid_from AS valid_from, nullIf(r.valid_to, 9223372036854775807) AS valid_to
ORDER BY valid_from, kind, a.id, b.id, layer, r.topic
