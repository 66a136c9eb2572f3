// Who published messages.
//
// $keys list<string> – the keys of the messages
//
// -> id: of the relationship
// -> row: as a load writes it
UNWIND $keys AS key
MATCH (p:Peer)-[r:PUBLISHED]->(:Message {key: key})
RETURN elementId(r) AS id, [p.key, key] AS row
