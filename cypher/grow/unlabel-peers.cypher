// Take a label from peers.
//
// $label string – of the closed list of labels
// $keys list<string> – the keys of the peers
//
// -> rows: how many they are
UNWIND $keys AS key
MATCH (p:Peer {key: key})
REMOVE p:$($label)
RETURN count(p) AS rows
