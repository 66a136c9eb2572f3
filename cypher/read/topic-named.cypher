// The topic of a name.
//
// $run run – the run
// $name string – its name in the source
//
// -> key: of the node
MATCH (n:Topic)
WHERE n.key STARTS WITH $run + '/' AND n.name = $name
RETURN n.key AS key
