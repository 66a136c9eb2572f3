// Remove the relationships LINK of a run.
//
// $run run – the run
MATCH ()-[r:LINK]->()
WHERE r.run = $run AND r.vf >= 0
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
