// Let a run be asked; how it came to be there does not matter any more.
//
// $run run – the run
//
// -> state: of the run
MATCH (r:Run {key: $run})
SET r.state = 'complete', r.imported = null
RETURN r.state AS state
