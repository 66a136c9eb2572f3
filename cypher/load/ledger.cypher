// Enter a batch into the ledger, if it is not there. Two that enter one wait for each other.
//
// $key string – run|statement|label of the batch|first row|digest of the rows
// $rows int rows – rows of the batch
MERGE (b:LoadBatch {key: $key})
ON CREATE SET b.rows = $rows
