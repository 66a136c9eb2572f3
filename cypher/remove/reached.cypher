// Remove the relationships REACHED of a run.
//
// $run run – the run
MATCH ()-[r:REACHED]->()
WHERE r.run = $run AND r.msg >= 0
CALL (r) { DELETE r } IN TRANSACTIONS OF 10000 ROWS
