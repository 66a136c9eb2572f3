// Let a run be asked; how it came to be there does not matter any more.
//
// $run run – the run
// $checksums string? – what its tables say in sum
//
// -> state: of the run
MATCH (r:Run {key: $run})
SET r.state = 'complete', r.imported = null, r.checksums = $checksums
RETURN r.state AS state
