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
// The subscribers of a topic are read once for all its messages.
WITH t, collect(m) AS messages
CALL (t) {
  MATCH (t)<-[s:SUBSCRIBES]-(p:Peer)
  WITH p, p.id AS id, s ORDER BY id
  RETURN collect([p, id, s.vf, s.vt]) AS lives
}
UNWIND messages AS m
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
WITH m, t, lives, reached, m.tick AS tick, coalesce(m.publisher, -1) AS publisher
WITH m, t, reached,
     [x IN lives WHERE x[2] <= tick AND x[3] > tick AND x[1] <> publisher | x[0]] AS eligible
WITH m, t, size(eligible) AS eligible, [p IN eligible WHERE NOT p IN reached | p.name] AS peers
WHERE size(peers) > 0
RETURN m.name AS message, t.name AS topic, m.interval AS interval, eligible,
       size(peers) AS missed, peers
ORDER BY missed DESC, m.id
