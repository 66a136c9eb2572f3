// The receptions of a message, duplicates too.
//
// $run run – the run
// $message int – dense index of the message
//
// -> previous_hop: dense index of the peer it came from, null = unknown
// -> peer: dense index of the peer that received it
// -> hop: links travelled from the publisher, null = unknown
// -> time_us: time of the arrival
// -> first: the first arrival at this peer
// -> interested: the peer subscribed then, null = unknown
CALL () {
  MATCH (a:Peer)-[h:HOP]->(b:Peer)
  USING INDEX h:HOP(run, msg)
  WHERE h.run = $run AND h.msg = $message
  RETURN a.id AS previous_hop, b.id AS peer, h
  UNION ALL
  MATCH (:Message)-[h:REACHED]->(b:Peer)
  USING INDEX h:REACHED(run, msg)
  WHERE h.run = $run AND h.msg = $message
  RETURN null AS previous_hop, b.id AS peer, h
}
RETURN previous_hop, peer, h.n AS hop, h.time_us AS time_us, h.first AS first,
       h.interested AS interested
ORDER BY hop, time_us, peer, previous_hop
