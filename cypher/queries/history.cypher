// The validity periods of links, subscriptions and presence that a mode selects.
//
// $run run – the run
// $mode as-of|from-to|between|contained-in|valid-during|created-in|deleted-in|all – which periods
// $at tick? ticks – the time of as-of
// $from tick? ticks – begin of the window of the other modes but all
// $to tick($from)? ticks – end of this window
// $ranges ranges($mode) – where an index has them: classes of length, and when these begin and end
// $kinds kinds? – links, subscriptions or presence, null = all that the run knows
// $layers layers? – layers of links to look at, null = all
//
// -> kind: links, subscriptions or presence
// -> peer: peer that holds the link, subscribes or is present
// -> other: the peer it links to or the topic it subscribes to, null = presence
// -> layer: of the link
// -> topic: that the link serves, null = none
// -> valid_from: tick at which the period begins
// -> valid_to: tick at which it ends, null = it does not
CALL () {
  WITH 'links' AS kind
  WHERE $kinds IS NULL OR kind IN $kinds
  UNWIND $ranges AS x
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = x[0] AND x[1] <= r.valid_from <= x[2]
    AND x[3] <= r.valid_to <= x[4]
    AND ($layers IS NULL OR r.layer IN $layers)
  RETURN kind, a, b, r
  UNION ALL
  WITH 'subscriptions' AS kind
  WHERE $kinds IS NULL OR kind IN $kinds
  UNWIND $ranges AS x
  MATCH (a:Peer)-[r:SUBSCRIBES]->(b:Topic)
  USING INDEX r:SUBSCRIBES(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = x[0] AND x[1] <= r.valid_from <= x[2]
    AND x[3] <= r.valid_to <= x[4]
  RETURN kind, a, b, r
  UNION ALL
  WITH 'presence' AS kind
  WHERE $kinds IS NULL OR kind IN $kinds
  UNWIND $ranges AS x
  MATCH (a:Peer)-[r:PRESENT]->(:Run)
  USING INDEX r:PRESENT(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = x[0] AND x[1] <= r.valid_from <= x[2]
    AND x[3] <= r.valid_to <= x[4]
  RETURN kind, a, null AS b, r
}
WITH kind, a, b, r.layer AS layer, r.topic AS of, r.topic_name AS topic,
     r.valid_from AS valid_from, max(r.valid_to) AS valid_to
RETURN kind, a.name AS peer, b.name AS other, layer, topic, valid_from,
       nullIf(valid_to, 9223372036854775807) AS valid_to
ORDER BY valid_from, kind, a.id, b.id, layer, of
