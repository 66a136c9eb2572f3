// Let a run be asked.
//
// $run run – the run
// $summary map – how many peers, links, … it has
//
// -> state: of the run
MATCH (r:Run {key: $run})
SET r += $summary, r.state = 'complete'
RETURN r.state AS state
