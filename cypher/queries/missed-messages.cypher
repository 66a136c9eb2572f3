// The messages that some eligible peers never received, and these peers. Messages whose
// publication was not reported are left out: their eligible peers are unknown.
//
// needs: missed, eligible peers of a message
// messages: all
//
// $run run – the run
// $topic topic? – messages of this topic, null = of all topics
//
// -> message: the message
// -> topic: topic that it was published to
// -> interval: interval of the publication
// -> eligible: peers present and subscribed when it was published, without the publisher
// -> missed: number of them that never received it
// -> peers: the peers that missed it
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
