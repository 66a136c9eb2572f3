// Remove the relationships PUBLISHED of a run.
//
// $run run – the run
MATCH (n:Message)-[r:PUBLISHED]-()
WHERE n.key STARTS WITH $run + '/'
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
