// Remove the relationships PLAYS of a run.
//
// $run run – the run
MATCH (n:Peer)-[r:PLAYS]->()
WHERE n.key STARTS WITH $run + '/'
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
