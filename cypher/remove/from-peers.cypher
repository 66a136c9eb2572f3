// Remove relationships that begin at a chunk of the peers of a run, whatever their type.
//
// $run run – the run
// $low int – first dense index of a peer
// $high int – last dense index of a peer
// $limit count – how many at most
//
// -> rows: how many that were
UNWIND range($low, $high) AS id
MATCH (n:Peer {key: $run + '/' + toString(id)})-[r]->()
WITH r LIMIT $limit
DELETE r
RETURN count(*) AS rows
