// The messages that missed somebody, and whom: subscribers they should have reached.
// Those whose publication nobody told are left out: who subscribed then is not known.
//
// needs: missed, who was to get a message
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
WHERE m.key STARTS WITH $run + '/'
MATCH (m)-[:PUBLISHED_ON]->(t:Topic)
WHERE $topic IS NULL OR t.key = $topic
MATCH (m)-[:MISSED]->(p:Peer)
WITH m, t, p ORDER BY p.id
WITH m, t, collect(p.name) AS peers
RETURN m.name AS message, t.name AS topic, m.interval AS interval, m.eligible AS eligible,
       size(peers) AS missed, peers
ORDER BY missed DESC, m.id
