// The peers that received a message of a topic they did not subscribe to then.
//
// $run run – the run
//
// -> peer: dense index
CALL () {
  MATCH ()-[h:HOP]->(p)
  WHERE h.run = $run AND h.message >= 0 AND h.subscribed = false
  RETURN p
  UNION
  MATCH ()-[h:ARRIVED_FROM_UNKNOWN]->(p)
  WHERE h.run = $run AND h.message >= 0 AND h.subscribed = false
  RETURN p
}
RETURN p.id AS peer
ORDER BY peer
