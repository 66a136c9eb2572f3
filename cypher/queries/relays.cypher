// The relays of a topic: peers that received its messages without subscribing to it.
//
// needs: subscriptions, receptions
//
// $run run – the run
// $topic topic – the topic
//
// -> peer: the relay
// -> messages: of the topic that came to it unsubscribed
// -> receptions: how often they came, null = the source tells of first arrivals alone
MATCH (:Topic {key: $topic})<-[:ON]-(m:Message)
CALL (m) {
  MATCH (:Peer)-[h:HOP]->(p:Peer)
  USING INDEX h:HOP(run, msg)
  WHERE h.run = $run AND h.msg = m.id AND h.interested = false
  RETURN p
  UNION ALL
  MATCH (:Message)-[h:REACHED]->(p:Peer)
  USING INDEX h:REACHED(run, msg)
  WHERE h.run = $run AND h.msg = m.id AND h.interested = false
  RETURN p
}
WITH p, count(DISTINCT m) AS messages, count(*) AS receptions
MATCH (r:Run {key: $run})
WITH *, CASE WHEN coalesce('duplicates of a message' IN r.known, true) THEN 1 END AS every
RETURN p.name AS peer, messages, every * receptions AS receptions
ORDER BY messages DESC, p.id
