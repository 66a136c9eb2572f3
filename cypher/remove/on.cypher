// Remove the relationships ON of a run.
//
// $run run – the run
MATCH (n:Message)-[r:ON]-()
WHERE n.key STARTS WITH $run + '/'
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
