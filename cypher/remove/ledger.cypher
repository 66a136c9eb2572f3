// Remove the ledger of a run.
//
// $run run – the run
MATCH (n:LoadBatch)
WHERE n.key STARTS WITH $run + '|'
CALL (n) { DELETE n } IN TRANSACTIONS OF 10000 ROWS
