// The presence periods of a chunk of peers that overlap a window.
//
// $run run – the run
// $low int – first dense index of a peer
// $high int – last dense index of a peer
// $first_tick int ticks – begin of the window, inclusive
// $last_tick int ticks – end of the window, inclusive
//
// -> chunk: [peer, valid_from, valid_to] of each, by peer and valid_from
UNWIND range($low, $high) AS id
MATCH (p:Peer {key: $run + '/' + toString(id)})-[s:PRESENT]->(:Run)
WHERE s.valid_from <= $last_tick AND s.valid_to > $first_tick
WITH p, s.valid_from AS valid_from, max(s.valid_to) AS valid_to ORDER BY p.id, valid_from
RETURN collect([p.id, valid_from, valid_to]) AS chunk
