// What is there of a batch of topics.
//
// $keys list<string> – their keys
//
// -> key: of the node
// -> labels: all it has
// -> properties: all it has
UNWIND $keys AS key
MATCH (n:Topic {key: key})
RETURN key, labels(n) AS labels, properties(n) AS properties
