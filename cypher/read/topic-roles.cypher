// Who published on a topic, passed it on without subscribing, or was its rendezvous.
//
// $run run – the run
// $topic int – dense index of the topic
// $roots list<string> – keys of peers that are rendezvous of some topic
//
// -> peer: dense index
// -> role: publisher, relay (received without subscribing) or rendezvous; a peer may be several
MATCH (t:Topic {key: $run + '/' + toString($topic)})
CALL (t) {
  MATCH (t)<-[:PUBLISHED_ON]-(:Message)<-[:PUBLISHED]-(p:Peer)
  RETURN p.id AS peer, 'publisher' AS role
  UNION
  MATCH (t)<-[:PUBLISHED_ON]-(m:Message)
  CALL (m) {
    MATCH (:Peer)-[h:HOP]->(p:Peer)
    USING INDEX h:HOP(run, message)
    WHERE h.run = $run AND h.message = m.id AND h.subscribed = false
    RETURN p
    UNION
    MATCH (m)-[h:ARRIVED_FROM_UNKNOWN]->(p:Peer)
    WHERE h.subscribed = false
    RETURN p
  }
  RETURN p.id AS peer, 'relay' AS role
  UNION
  MATCH (t)<-[:HAS_ROLE {role: 'rendezvous'}]-(p:Peer)
  RETURN p.id AS peer, 'rendezvous' AS role
  UNION
  // Where no role is reported: linked to by children in the topic's tree, and never to a parent.
  UNWIND $roots AS key
  MATCH (p:Peer {key: key})
  WHERE EXISTS { (p)<-[:LINK {layer: 'tree', topic: $topic}]-(:Peer) }
    AND NOT EXISTS { (p)-[:LINK {layer: 'tree', topic: $topic}]->(:Peer) }
  RETURN p.id AS peer, 'rendezvous' AS role
}
RETURN DISTINCT peer, role
ORDER BY peer, role
