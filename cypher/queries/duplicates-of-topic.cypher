// The duplicates of a topic: peers that received its messages more than once.
//
// needs: receptions, duplicates of a message
// messages: all
//
// $run run – the run
// $topic topic – the topic
//
// -> peer: a peer with a duplicate
// -> duplicates: receptions that were not the first; all receptions of its own messages
// -> receptions: arrivals of the topic's messages at this peer
// -> messages: number of these messages
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
WITH p, sum(CASE WHEN h.first THEN 0 ELSE 1 END) AS duplicates, count(*) AS receptions,
     count(DISTINCT m) AS messages
WHERE duplicates > 0
RETURN p.name AS peer, duplicates, receptions, messages
ORDER BY duplicates DESC, p.id
