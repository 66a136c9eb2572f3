// Label peers as Rendezvous.
//
// $keys list<string> – their keys
//
// -> rows: how many they are
UNWIND $keys AS key
MATCH (p:Peer {key: key})
SET p:Rendezvous
RETURN count(p) AS rows
