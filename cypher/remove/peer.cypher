// Remove the nodes Peer of a run.
//
// $run run – the run
MATCH (n:Peer)
WHERE n.key STARTS WITH $run + '/'
CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS
