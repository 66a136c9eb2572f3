// The peers that messages should have reached and never did.
//
// $keys list<string> – the keys of the messages
//
// -> id: of the relationship
// -> row: as a load writes it
UNWIND $keys AS key
MATCH (:Message {key: key})-[r:MISSED]->(p:Peer)
RETURN elementId(r) AS id, [key, p.key] AS row
