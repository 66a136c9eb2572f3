// Remove the nodes Message of a run.
//
// $run run – the run
MATCH (n:Message)
WHERE n.key STARTS WITH $run + '/'
CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS
