// The peers that a message should have reached and never did.
//
// $run run – the run
// $message int – dense index of the message
//
// -> peer: dense index of the peer
MATCH (:Message {key: $run + '/' + toString($message)})-[:MISSED]->(p:Peer)
RETURN p.id AS peer
ORDER BY peer
