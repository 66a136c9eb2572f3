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
// -> subscribed: the peer subscribed then, null = unknown
CALL () {
  MATCH (a:Peer)-[h:HOP]->(b:Peer)
  USING INDEX h:HOP(run, message)
  WHERE h.run = $run AND h.message = $message
  RETURN a.id AS previous_hop, b.id AS peer, h
  UNION ALL
  MATCH (:Message)-[h:ARRIVED_FROM_UNKNOWN]->(b:Peer)
  USING INDEX h:ARRIVED_FROM_UNKNOWN(run, message)
  WHERE h.run = $run AND h.message = $message
  RETURN null AS previous_hop, b.id AS peer, h
}
RETURN previous_hop, peer, h.hops AS hop, h.time_us AS time_us, h.first AS first,
       h.subscribed AS subscribed
ORDER BY hop, time_us, peer, previous_hop
