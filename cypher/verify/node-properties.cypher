// All labels and properties of a batch of nodes. Peer stands for their label.
//
// $keys list<string> – their keys
//
// -> key: of the node
// -> labels: of the node
// -> properties: of the node
UNWIND $keys AS key
MATCH (n:Peer {key: key})
RETURN key, labels(n) AS labels, properties(n) AS properties
