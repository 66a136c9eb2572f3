// The names of all runs, whatever their state.
//
// -> name: the run
MATCH (r:Run)
RETURN r.name AS name
ORDER BY name
