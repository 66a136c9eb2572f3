// Label the peers that published.
//
// $run run – the run
//
// -> rows: how many they are
MATCH (p:Peer)
WHERE p.key STARTS WITH $run + '/' AND EXISTS { (p)-[:PUBLISHED]->() }
SET p:Publisher
RETURN count(p) AS rows
