// The lives of links that touch a stretch of time, from a time to before another.
//
// needs: links
//
// $run run – the run
// $from tick ticks – begin of the stretch, inclusive
// $to tick($from) ticks – its end, exclusive
// $levels levels($from) – where in the index spans alive at $from can begin
// $layers layers? – layers of links to look at, null = all
//
// -> src: peer that holds the link
// -> dst: peer it leads to
// -> layer: of the link
// -> topic: that it serves, null = none
// -> vf: tick at which it begins
// -> vt: tick at which it ends, null = it does not
UNWIND $levels AS l
MATCH (a:Peer)-[r:LINK]->(b:Peer)
USING INDEX r:LINK(run, lv, vf)
WHERE r.run = $run AND r.lv = l[0] AND r.vf > l[1] AND r.vf < $to AND r.vt > $from
  AND ($layers IS NULL OR r.layer IN $layers)
RETURN a.name AS src, b.name AS dst, r.layer AS layer, r.topic_name AS topic, r.vf AS vf,
       nullIf(r.vt, 9223372036854775807) AS vt
ORDER BY vf, a.id, b.id, layer, r.topic
