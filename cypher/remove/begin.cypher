// Begin to remove a run: from now on it answers nothing.
//
// $run run – the run
//
// -> name: of the run, no row where there is none
MATCH (r:Run {key: $run})
SET r.state = 'removing'
RETURN r.name AS name
