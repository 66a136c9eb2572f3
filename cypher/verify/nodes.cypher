// How many nodes a run has, what they have, and what is linked to them, by their labels.
//
// A node is the run's if it names the run or has a key of its own kind. It reads all nodes that
// there are: what nothing knows of is in no index.
//
// $run run – the run
//
// -> labels: of the nodes
// -> nodes: how many there are
// -> properties: how many these have
// -> begin: relationships that begin at them
// -> end: relationships that end at them
MATCH (n)
WHERE n.run = $run OR n.key = $run OR n.key STARTS WITH $run + '/'
RETURN labels(n) AS labels, count(n) AS nodes, sum(size(keys(n))) AS properties,
       sum(COUNT { (n)-->() }) AS begin, sum(COUNT { (n)<--() }) AS end
