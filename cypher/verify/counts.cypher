// How many nodes of each label a run has.
//
// $run run – the run
//
// -> label: of the nodes, no row where there are none
// -> rows: how many there are
MATCH (n:Peer) WHERE n.key STARTS WITH $run + '/' RETURN 'Peer' AS label, count(n) AS rows
UNION ALL
MATCH (n:Topic) WHERE n.key STARTS WITH $run + '/' RETURN 'Topic' AS label, count(n) AS rows
UNION ALL
MATCH (n:Message) WHERE n.key STARTS WITH $run + '/' RETURN 'Message' AS label, count(n) AS rows
UNION ALL
MATCH (n:Interval) WHERE n.key STARTS WITH $run + '/' RETURN 'Interval' AS label, count(n) AS rows
