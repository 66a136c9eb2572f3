// The names most like one that no topic has.
//
// $run run – the run
// $name string – the name that was asked for
//
// -> name: of a topic
MATCH (n:Topic)
WHERE n.key STARTS WITH $run + '/'
RETURN n.name AS name
ORDER BY toLower(n.name) CONTAINS toLower($name) DESC, left(n.name, 3) = left($name, 3) DESC, n.id
LIMIT 200
