// Remove the node of a run, when all the rest is gone.
//
// $run run – the run
MATCH (r:Run {key: $run})
DETACH DELETE r
