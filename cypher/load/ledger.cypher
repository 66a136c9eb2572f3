// Enter a batch into the ledger; it fails where the batch is there.
//
// $key string – run|statement|label of the batch|first row|digest of the rows
// $rows int rows – rows of the batch
CREATE (:LoadBatch {key: $key, rows: $rows})
