// Remove the relationships HOP of a run.
//
// $run run – the run
MATCH ()-[r:HOP]->()
WHERE r.run = $run
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
