// Let a run be asked, unless others remove or replaced it; how it came to be there does not matter
// any more.
//
// $run run – the run
// $checksums string? – what its tables say in sum
// $tables string – the identity of the tables, '' = unknown
//
// -> state: of the run; no row where it is removed or another
MATCH (r:Run {key: $run})
SET r.locked = true
REMOVE r.locked
WITH r
WHERE r.state <> 'removing' AND coalesce(r.tables, '') = $tables
SET r.state = 'complete', r.imported = null, r.checksums = $checksums
RETURN r.state AS state
