// Who published on a topic, and who received its messages without subscribing then.
//
// $run run – the run
// $topic int – dense index of the topic
//
// -> peer: dense index
// -> role: publisher or relay; a peer may be both
MATCH (:Topic {key: $run + '/' + toString($topic)})<-[:ON]-(m:Message)
CALL (m) {
  MATCH (p:Peer)-[:PUBLISHED]->(m)
  RETURN p.id AS peer, 'publisher' AS role
  UNION
  MATCH (:Peer)-[h:HOP]->(p:Peer)
  WHERE h.run = $run AND h.msg = m.id AND h.interested = false
  RETURN p.id AS peer, 'relay' AS role
  UNION
  MATCH (m)-[h:REACHED]->(p:Peer)
  WHERE h.interested = false
  RETURN p.id AS peer, 'relay' AS role
}
RETURN DISTINCT peer, role
ORDER BY peer, role
