// The messages that missed somebody, and whom: subscribers they should have reached.
// Those whose publication nobody told are left out: who subscribed then is not known.
//
// needs: subscriptions, receptions
//
// $run run – the run
// $topic topic? – messages of this topic, null = of any
//
// -> message: the message
// -> topic: that it was published to
// -> interval: of the publication
// -> eligible: peers present and subscribed when it was published, but the publisher
// -> missed: how many of them never received it
// -> peers: who they are
MATCH (m:Message)
WHERE m.key STARTS WITH $run + '/' AND m.publication_known
MATCH (m)-[:ON]->(t:Topic)
WHERE $topic IS NULL OR t.key = $topic
CALL (m) {
  CALL (m) {
    MATCH (:Peer)-[h:HOP]->(p:Peer)
    WHERE h.run = $run AND h.msg = m.id
    RETURN p
    UNION
    MATCH (:Message)-[h:REACHED]->(p:Peer)
    WHERE h.run = $run AND h.msg = m.id
    RETURN p
  }
  RETURN collect(p) AS reached
}
CALL (m, t, reached) {
  MATCH (t)<-[s:SUBSCRIBES]-(p:Peer)
  WHERE s.vf <= m.tick AND s.vt > m.tick AND p.id <> coalesce(m.publisher, -1)
  WITH DISTINCT p, reached
  ORDER BY p.id
  RETURN count(p) AS eligible, collect(CASE WHEN NOT p IN reached THEN p.name END) AS peers
}
WITH m, t, eligible, peers
WHERE size(peers) > 0
RETURN m.name AS message, t.name AS topic, m.interval AS interval, eligible,
       size(peers) AS missed, peers
ORDER BY missed DESC, m.id
