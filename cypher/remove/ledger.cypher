// Remove entries of the ledger of a run.
//
// $run run – the run
// $limit count – how many at most
//
// -> rows: how many that were
MATCH (n:LoadBatch)
WHERE n.key STARTS WITH $run + '|'
WITH n LIMIT $limit
DELETE n
RETURN count(*) AS rows
