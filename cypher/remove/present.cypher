// Remove the relationships PRESENT of a run.
//
// $run run – the run
MATCH ()-[r:PRESENT]->()
WHERE r.run = $run AND r.lv >= 0
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
