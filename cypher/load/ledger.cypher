// Enter a batch into the ledger, if it is not there. The lock on the run keeps others waiting, such
// as a removal, after which nothing is entered; nor is a batch of other tables than the copy's.
//
// $run run – the run
// $key string – run|statement|label of the batch|first row|digest of the rows
// $rows int rows – rows of the batch
// $tables string – the identity of the tables that it comes from, '' = unknown
//
// -> key: of the batch; no row where the run is removed or another
MATCH (r:Run {key: $run})
SET r.locked = true
REMOVE r.locked
WITH r
WHERE r.state <> 'removing' AND coalesce(r.tables, '') = $tables
MERGE (b:LoadBatch {key: $key})
ON CREATE SET b.rows = $rows
RETURN b.key AS key
