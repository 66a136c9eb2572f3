// What is there of a batch of topics.
//
// $keys list<string> – their keys
//
// -> key: of the node
// -> properties: all it has
UNWIND $keys AS key
MATCH (n:Topic {key: key})
RETURN key, properties(n) AS properties
