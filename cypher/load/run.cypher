// Begin or go on with the load of a run.
//
// $run run – the run
// $facts map – properties of the Run node
//
// -> state: of the run
MERGE (r:Run {key: $run})
ON CREATE SET r.state = 'loading'
SET r += $facts
RETURN r.state AS state
