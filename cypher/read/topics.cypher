// The topics of a run.
//
// $run run – the run
//
// -> id: dense index
// -> name: its name in the source
MATCH (t:Topic)
WHERE t.key STARTS WITH $run + '/'
RETURN t.id AS id, t.name AS name
ORDER BY id
