// The subscriptions of a chunk of peers that overlap a window.
//
// $run run – the run
// $low int – first dense index of a peer
// $high int – last dense index of a peer
// $first_tick int ticks – begin of the window, inclusive
// $last_tick int ticks – end of the window, inclusive
//
// -> chunk: [peer, topic, valid_from, valid_to] of each, by peer, topic and valid_from
UNWIND range($low, $high) AS id
MATCH (p:Peer {key: $run + '/' + toString(id)})-[s:SUBSCRIBES]->(t:Topic)
WHERE s.valid_from <= $last_tick AND s.valid_to > $first_tick
WITH p, t, s.valid_from AS valid_from, max(s.valid_to) AS valid_to
ORDER BY p.id, t.id, valid_from
RETURN collect([p.id, t.id, valid_from, valid_to]) AS chunk
