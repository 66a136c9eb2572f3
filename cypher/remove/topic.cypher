// Remove nodes Topic of a run.
//
// $run run – the run
// $limit count – how many at most
//
// -> rows: how many that were
MATCH (n:Topic)
WHERE n.key STARTS WITH $run + '/'
WITH n LIMIT $limit
DETACH DELETE n
RETURN count(*) AS rows
