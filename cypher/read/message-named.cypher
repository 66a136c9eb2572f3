// The messages that a name, or a short form of one, can mean: the best first.
//
// $run run – the run
// $name string – a name in the source, in full
// $number int? – a dense index
// $ends list<list> – how a name can begin and end
//
// -> key: of the node
// -> name: in full
// -> is_short: it is meant by a part of its name alone
MATCH (n:Message)
WHERE n.key STARTS WITH $run + '/'
  AND (n.name = $name OR n.id = $number
    OR any(end IN $ends WHERE n.name STARTS WITH end[0] AND n.name ENDS WITH end[1]
      AND size(n.name) >= size(end[0]) + size(end[1])))
WITH n, CASE WHEN n.name = $name THEN 0 WHEN n.id = $number THEN 1 ELSE 2 END AS rank
RETURN n.key AS key, n.name AS name, rank = 2 AS is_short
ORDER BY rank, n.id
LIMIT 50
