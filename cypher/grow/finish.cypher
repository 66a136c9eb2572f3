// End a growth: the run holds the new generation from now on, and the ledger has no more use.
//
// $run run – the run
// $facts map – properties of the Run node
MATCH (r:Run {key: $run})
SET r += $facts
REMOVE r.grower, r.turn
WITH r
MATCH (n:LoadBatch)
WHERE n.key STARTS WITH $run + '|'
DELETE n
