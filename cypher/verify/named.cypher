// How many relationships name a run, whatever they are between: questions find them by an index.
//
// $run run – the run
//
// -> statement: that checks those of this type
// -> rows: how many there are
MATCH ()-[r:LINK]->() WHERE r.run = $run AND r.valid_from IS NOT NULL
RETURN 'links' AS statement, count(r) AS rows
UNION ALL
MATCH ()-[r:PRESENT]->() WHERE r.run = $run AND r.valid_from IS NOT NULL
RETURN 'presence' AS statement, count(r) AS rows
UNION ALL
MATCH ()-[r:SUBSCRIBES]->() WHERE r.run = $run AND r.valid_from IS NOT NULL
RETURN 'subscriptions' AS statement, count(r) AS rows
UNION ALL
MATCH ()-[r:HOP]->() WHERE r.run = $run AND r.message IS NOT NULL
RETURN 'hops' AS statement, count(r) AS rows
UNION ALL
MATCH ()-[r:ARRIVED_FROM_UNKNOWN]->() WHERE r.run = $run AND r.message IS NOT NULL
RETURN 'arrived-from-unknown' AS statement, count(r) AS rows
UNION ALL
MATCH ()-[r:HAS_ATTRIBUTE]->() WHERE r.run = $run AND r.valid_from IS NOT NULL
RETURN 'attributes' AS statement, count(r) AS rows
