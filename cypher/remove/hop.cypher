// Remove the relationships HOP of a run.
//
// $run run – the run
MATCH ()-[r:HOP]->()
WHERE r.run = $run AND r.msg >= 0
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
