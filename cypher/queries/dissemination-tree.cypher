// How a message spread: every reception by hop and time, including duplicates.
//
// needs: receptions
// messages: $message
//
// $run run – the run
// $message message – the message
//
// -> hop: links travelled from the publisher, null = unknown
// -> time_us: time of the arrival, null = unknown
// -> from: peer it came from, null = unknown
// -> to: peer that received it
// -> first: the first arrival at this peer; the others are duplicates
// -> subscribed: the peer was subscribed to the topic at that time, null = unknown
MATCH (m:Message {key: $message})
CALL (m) {
  MATCH (a:Peer)-[h:HOP]->(b:Peer)
  USING INDEX h:HOP(run, message)
  WHERE h.run = $run AND h.message = m.id
  RETURN a, b, h
  UNION ALL
  MATCH (:Message)-[h:ARRIVED_FROM_UNKNOWN]->(b:Peer)
  USING INDEX h:ARRIVED_FROM_UNKNOWN(run, message)
  WHERE h.run = $run AND h.message = m.id
  RETURN null AS a, b, h
}
RETURN h.hops AS hop, h.time_us AS time_us, a.name AS from, b.name AS to, h.first AS first,
       h.subscribed AS subscribed
ORDER BY hop, time_us, b.id, a.id
