// The node of a run with all its properties.
//
// $run run – the run
//
// -> properties: of the Run node
MATCH (r:Run {key: $run})
RETURN properties(r) AS properties
