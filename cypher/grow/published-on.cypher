// The topics of messages.
//
// $keys list<string> – the keys of the messages
//
// -> id: of the relationship
// -> row: as a load writes it
UNWIND $keys AS key
MATCH (:Message {key: key})-[r:PUBLISHED_ON]->(t:Topic)
RETURN elementId(r) AS id, [key, t.key] AS row
