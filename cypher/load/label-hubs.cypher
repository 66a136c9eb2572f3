// Label peers as Hub.
//
// $keys list<string> – their keys
//
// -> rows: how many they are
UNWIND $keys AS key
MATCH (p:Peer {key: key})
SET p:Hub
RETURN count(p) AS rows
