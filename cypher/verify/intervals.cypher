// What is there of a batch of intervals.
//
// $keys list<string> – their keys
//
// -> key: of the node
// -> properties: all it has
UNWIND $keys AS key
MATCH (n:Interval {key: key})
RETURN key, properties(n) AS properties
