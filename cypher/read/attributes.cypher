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
// While a copy grows, a period that has ended is there twice.
WITH p, a.key AS key, a.value AS value, a.valid_from AS valid_from, max(a.valid_to) AS valid_to
ORDER BY p.id, key, valid_from
RETURN collect([p.id, key, value, valid_from, valid_to]) AS chunk
