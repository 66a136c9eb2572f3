// The topic with the most subscribers at a time, to show something of it.
//
// $run run – the run
// $at tick ticks – the time
//
// -> topic: key of the topic
MATCH (t:Topic)
WHERE t.key STARTS WITH $run + '/'
MATCH (t)<-[s:SUBSCRIBES]-(p:Peer)
WHERE s.valid_from <= $at AND s.valid_to > $at
WITH t, count(DISTINCT p) AS subscribers
RETURN t.key AS topic
ORDER BY subscribers DESC, t.id
LIMIT 1
