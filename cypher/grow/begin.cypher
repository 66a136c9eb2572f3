// Begin to grow a run's copy: levels and layers are widened, and only this growth may go on.
//
// $run run – the run
// $tables string – those of the copy, as it was read
// $before string – who grew it then; '' = nobody
// $grower string – who grows it from now on
// $levels list<int> – of closed periods, before and after
// $layers list<string> – of links, before and after
//
// -> run: the run; no row where it is not complete, or another growth has begun or ended since
MATCH (r:Run {key: $run, state: 'complete'})
SET r.locked = true
REMOVE r.locked
WITH r
WHERE r.tables = $tables AND coalesce(r.grower, '') IN [$before, $grower]
SET r.grower = $grower, r.turn = 0, r.levels = $levels, r.link_layers = $layers
RETURN r.name AS run
