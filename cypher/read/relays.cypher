// The peers that received a message of a topic they did not subscribe to then.
//
// $run run – the run
//
// -> peer: dense index
CALL () {
  MATCH (:Peer)-[h:HOP]->(p:Peer)
  WHERE h.run = $run AND h.interested = false
  RETURN p
  UNION
  MATCH (:Message)-[h:REACHED]->(p:Peer)
  WHERE h.run = $run AND h.interested = false
  RETURN p
}
RETURN p.id AS peer
ORDER BY peer
