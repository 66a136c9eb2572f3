// The relays of a topic: peers that received its messages without subscribing to it or publishing
// them. Peers for which this is unknown for some message come last, without counts.
//
// needs: subscriptions, receptions
// messages: all
//
// $run run – the run
// $topic topic – the topic
//
// -> peer: the relay
// -> messages: messages of the topic that it received while not subscribed, null = unknown
// -> receptions: arrivals of these messages, null also if only first arrivals are reported
MATCH (:Topic {key: $topic})<-[:PUBLISHED_ON]-(m:Message)
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
WITH m, p, h
WHERE p.id <> coalesce(m.publisher, -1) AND coalesce(h.subscribed = false, true)
WITH p, count(DISTINCT m) AS messages, count(*) AS receptions,
     CASE WHEN count(*) = count(h.subscribed) THEN 1 END AS known
MATCH (r:Run {key: $run})
WITH *, CASE WHEN coalesce('duplicates of a message' IN r.known, true) THEN 1 END AS every
RETURN p.name AS peer, known * messages AS messages, known * every * receptions AS receptions
ORDER BY messages IS NULL, messages DESC, p.id
