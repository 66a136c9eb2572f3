// A chunk of the peers of a run.
//
// $run run – the run
// $low int – first dense index
// $high int – last dense index
//
// -> chunk: [id, name, labels] of each, by id
UNWIND range($low, $high) AS id
MATCH (p:Peer {key: $run + '/' + toString(id)})
WITH p ORDER BY p.id
RETURN collect([p.id, p.name, labels(p)]) AS chunk
