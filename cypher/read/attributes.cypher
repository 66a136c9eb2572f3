// The values of attributes of a chunk of peers that overlap a window.
//
// $run run – the run
// $low int – first dense index of a peer
// $high int – last dense index of a peer
// $first_tick int ticks – begin of the window, inclusive
// $last_tick int ticks – end of the window, inclusive
//
// -> chunk: [peer, key, value, valid_from, valid_to] of each, by peer, key and valid_from
UNWIND range($low, $high) AS id
MATCH (p:Peer {key: $run + '/' + toString(id)})-[a:HAS_ATTRIBUTE]->(:Run)
WHERE a.valid_from <= $last_tick AND a.valid_to > $first_tick
WITH p, a ORDER BY p.id, a.key, a.valid_from
RETURN collect([p.id, a.key, a.value, a.valid_from, a.valid_to]) AS chunk
