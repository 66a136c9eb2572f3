// The validity periods of links that overlap a window, from a time to before another.
//
// needs: links
//
// $run run – the run
// $from tick ticks – begin of the window, inclusive
// $to tick($from) ticks – its end, exclusive
// $levels levels($from) – where in the index periods valid at $from can begin
// $layers layers? – layers of links to look at, null = all
//
// -> src: peer that holds the link
// -> dst: peer it leads to
// -> layer: of the link
// -> topic: that it serves, null = none
// -> valid_from: tick at which it begins
// -> valid_to: tick at which it ends, null = it does not
UNWIND $levels AS l
MATCH (a:Peer)-[r:LINK]->(b:Peer)
USING INDEX r:LINK(run, length_class, valid_from)
WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from < $to
  AND r.valid_to > $from
  AND ($layers IS NULL OR r.layer IN $layers)
WITH a, b, r.layer AS layer, r.topic AS of, r.topic_name AS topic, r.valid_from AS valid_from,
     max(r.valid_to) AS valid_to
RETURN a.name AS src, b.name AS dst, layer, topic, valid_from,
       nullIf(valid_to, 9223372036854775807) AS valid_to
ORDER BY valid_from, a.id, b.id, layer, of
