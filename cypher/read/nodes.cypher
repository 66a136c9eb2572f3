// How many nodes there are, of whatever run.
//
// -> nodes: their number
MATCH (n)
RETURN count(n) AS nodes
