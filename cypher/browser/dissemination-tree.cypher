// How a message spread: from its publisher, by first receptions, hop by hop.
//
// needs: receptions
//
// $run run – the run
// $message message – the message
// $peers count=60 peers – how many to draw at most, the first ones it reached
//
// -> from: the peer a copy came from; the message, where that peer is unknown
// -> arrival: the first reception, numbered by hops; PUBLISHED and PUBLISHED_ON in the first rows
// -> to: the peer that received it
MATCH (m:Message {key: $message})
CALL (m) {
  MATCH (p:Peer)-[r:PUBLISHED]->(m) RETURN p AS from, r AS arrival, m AS to
  UNION ALL
  MATCH (m)-[r:PUBLISHED_ON]->(t:Topic) RETURN m AS from, r AS arrival, t AS to
  UNION ALL
  CALL (m) {
    MATCH (a:Peer)-[h:HOP]->(b:Peer)
    USING INDEX h:HOP(run, message)
    WHERE h.run = $run AND h.message = m.id AND h.first
    RETURN a, h, b
    UNION ALL
    MATCH (a:Message)-[h:ARRIVED_FROM_UNKNOWN]->(b:Peer)
    USING INDEX h:ARRIVED_FROM_UNKNOWN(run, message)
    WHERE h.run = $run AND h.message = m.id AND h.first
    RETURN a, h, b
  }
  WITH a, h, b ORDER BY h.hops, h.time_us, b.id LIMIT $peers
  RETURN a AS from, h AS arrival, b AS to
}
RETURN from, arrival, to
