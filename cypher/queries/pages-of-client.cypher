// The pages that a client wants at a time.
//
// needs: presence, subscriptions
// partition: $at
//
// $at tick ticks – the time
// $peer peer($at) – the client, present at $at
//
// -> page: a page
// -> clients: all clients that want it at that time
MATCH (p:Peer {key: $peer})-[s:SUBSCRIBES]->(t:Topic)
WHERE s.valid_from <= $at AND s.valid_to > $at
WITH DISTINCT t
MATCH (t)<-[s:SUBSCRIBES]-(client:Peer)
WHERE s.valid_from <= $at AND s.valid_to > $at
WITH t, count(DISTINCT client) AS clients
RETURN t.name AS page, clients
ORDER BY t.id
