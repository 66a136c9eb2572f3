// The duplicates of a message: peers that received it more than once.
//
// needs: receptions, duplicates of a message
// messages: $message
//
// $run run – the run
// $message message – the message
//
// -> peer: a peer with a duplicate
// -> duplicates: receptions that were not the first; all receptions at the publisher
// -> receptions: arrivals of the message at this peer
MATCH (m:Message {key: $message})
CALL (m) {
  MATCH (:Peer)-[h:HOP]->(p:Peer)
  USING INDEX h:HOP(run, message)
  WHERE h.run = $run AND h.message = m.id
  RETURN p, h
  UNION ALL
  MATCH (:Message)-[h:ARRIVED_FROM_UNKNOWN]->(p:Peer)
  USING INDEX h:ARRIVED_FROM_UNKNOWN(run, message)
  WHERE h.run = $run AND h.message = m.id
  RETURN p, h
}
WITH p, sum(CASE WHEN h.first THEN 0 ELSE 1 END) AS duplicates, count(*) AS receptions
WHERE duplicates > 0
RETURN p.name AS peer, duplicates, receptions
ORDER BY duplicates DESC, p.id
