// The links of a chunk of peers that overlap a window.
//
// $run run – the run
// $low int – first dense index of a source
// $high int – last dense index of a source
// $first_tick int ticks – begin of the window, inclusive
// $last_tick int ticks – end of the window, inclusive
// $layers list<string>? – layers whose links count, null = all
//
// -> chunk: [src, dst, layer, topic, valid_from, valid_to] of each, by src, dst and valid_from
UNWIND range($low, $high) AS id
MATCH (a:Peer {key: $run + '/' + toString(id)})-[r:LINK]->(b:Peer)
WHERE r.valid_from <= $last_tick AND r.valid_to > $first_tick
  AND ($layers IS NULL OR r.layer IN $layers)
WITH a, b, r.layer AS layer, r.topic AS topic, r.valid_from AS valid_from,
     max(r.valid_to) AS valid_to
ORDER BY a.id, b.id, valid_from
RETURN collect([a.id, b.id, layer, topic, valid_from, valid_to]) AS chunk
