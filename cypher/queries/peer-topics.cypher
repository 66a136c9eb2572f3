// A peer's messages per topic: published, received and forwarded.
//
// needs: receptions
// messages: all
//
// $run run – the run
// $peer peer – the peer
//
// -> topic: the topic, null = messages of unknown topic
// -> published: messages of it that the peer published, null = their publishers are unknown
// -> received: messages of it that the peer received, without its own
// -> receptions: arrivals of these, null = the source reports first arrivals only
// -> duplicates: receptions that were not the first; all receptions of own messages; null likewise
// -> sent: copies of the topic's messages that it sent to others, null also without previous hops
MATCH (p:Peer {key: $peer})
CALL (p) {
  MATCH (p)-[:PUBLISHED]->(m:Message)
  RETURN m.id AS id, 1 AS published, 0 AS receptions, 0 AS duplicates, 0 AS sent
  UNION ALL
  MATCH (:Peer)-[h:HOP]->(p)
  RETURN h.message AS id, 0 AS published, 1 AS receptions,
         CASE WHEN h.first THEN 0 ELSE 1 END AS duplicates, 0 AS sent
  UNION ALL
  MATCH (:Message)-[h:ARRIVED_FROM_UNKNOWN]->(p)
  RETURN h.message AS id, 0 AS published, 1 AS receptions,
         CASE WHEN h.first THEN 0 ELSE 1 END AS duplicates, 0 AS sent
  UNION ALL
  MATCH (p)-[h:HOP]->(:Peer)
  RETURN h.message AS id, 0 AS published, 0 AS receptions, 0 AS duplicates, 1 AS sent
}
WITH id, sum(published) AS published, sum(receptions) AS receptions,
     sum(duplicates) AS duplicates, sum(sent) AS sent
MATCH (m:Message {key: $run + '/' + toString(id)})
OPTIONAL MATCH (m)-[:PUBLISHED_ON]->(t:Topic)
WITH t, CASE WHEN count(m.publisher) > 0 THEN sum(published) END AS published,
     sum(CASE receptions WHEN duplicates THEN 0 ELSE 1 END) AS received,
     sum(receptions) AS receptions, sum(duplicates) AS duplicates, sum(sent) AS sent
MATCH (r:Run {key: $run})
WITH *, CASE WHEN coalesce('duplicates of a message' IN r.known, true) THEN 1 END AS every,
     CASE WHEN coalesce('previous hops' IN r.known, true) THEN 1 END AS all_ways
ORDER BY receptions DESC, t.id
RETURN t.name AS topic, published, received, every * receptions AS receptions,
       every * duplicates AS duplicates, every * all_ways * sent AS sent
