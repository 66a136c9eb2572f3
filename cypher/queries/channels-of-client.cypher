// The broadcast channels that a client listens to at a time.
//
// needs: presence, links
// partition: $at
//
// $at tick ticks – the time
// $peer peer($at) – the client, present at $at
// $layers layers=listens – layers of the links from clients to their channels
//
// -> channel: a channel
// -> clients: all clients that listen to it at that time
MATCH (p:Peer {key: $peer})-[r:LINK]->(c:Peer)
WHERE r.valid_from <= $at AND r.valid_to > $at AND r.layer IN $layers
WITH DISTINCT c
MATCH (c)<-[r:LINK]-(listener:Peer)
WHERE r.valid_from <= $at AND r.valid_to > $at AND r.layer IN $layers
WITH c, count(DISTINCT listener) AS clients
RETURN c.name AS channel, clients
ORDER BY c.id
