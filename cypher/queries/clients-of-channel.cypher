// The clients that listen to a broadcast channel at a time.
//
// needs: presence, subscriptions, links
// partition: $at
//
// $at tick ticks – the time
// $peer peer($at) – the channel, present at $at
// $layers layers=listens – layers of the links from clients to their channels
//
// -> client: a client
// -> pages: pages that it wants at that time, on whatever channel
MATCH (channel:Peer {key: $peer})<-[r:LINK]-(listener:Peer)
WHERE r.valid_from <= $at AND r.valid_to > $at AND r.layer IN $layers
WITH DISTINCT listener
CALL (listener) {
  MATCH (listener)-[s:SUBSCRIBES]->(t:Topic)
  WHERE s.valid_from <= $at AND s.valid_to > $at
  RETURN count(DISTINCT t) AS pages
}
RETURN listener.name AS client, pages
ORDER BY listener.id
