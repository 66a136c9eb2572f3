// The subscribers a message never reached: present and subscribed when it was published.
//
// needs: subscriptions, receptions
// epoch: $message
//
// $run run – the run
// $message message – the message
//
// -> peer: a subscriber, not the publisher, without a reception
MATCH (m:Message {key: $message})-[:ON]->(t:Topic)
CALL (m) {
  CALL (m) {
    MATCH (:Peer)-[h:HOP]->(p:Peer)
    USING INDEX h:HOP(run, msg)
    WHERE h.run = $run AND h.msg = m.id
    RETURN p
    UNION
    MATCH (:Message)-[h:REACHED]->(p:Peer)
    USING INDEX h:REACHED(run, msg)
    WHERE h.run = $run AND h.msg = m.id
    RETURN p
  }
  RETURN collect(p) AS reached
}
MATCH (t)<-[s:SUBSCRIBES]-(p)
WHERE s.vf <= m.tick AND s.vt > m.tick AND p.id <> coalesce(m.publisher, -1) AND NOT p IN reached
WITH DISTINCT p
RETURN p.name AS peer
ORDER BY p.id
