// Remove the relationships SUBSCRIBES of a run.
//
// $run run – the run
MATCH (n:Topic)-[r:SUBSCRIBES]-()
WHERE n.key STARTS WITH $run + '/'
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
