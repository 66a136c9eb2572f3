// What is there of a batch of intervals.
//
// $keys list<string> – their keys
//
// -> key: of the node
// -> labels: all it has
// -> properties: all it has
UNWIND $keys AS key
MATCH (n:Interval {key: key})
RETURN key, labels(n) AS labels, properties(n) AS properties
