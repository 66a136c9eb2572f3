// Who subscribes to what at a time: the topics with the most subscribers, and their subscribers.
//
// needs: subscriptions
//
// $run run – the run
// $at tick ticks – the time
// $k count=4 topics – how many topics to draw at most
// $peers count=60 peers – how many subscribers of a topic to draw at most
//
// -> topic: the topic
// -> subscriptions: of its subscribers
// -> subscribers: the peers
MATCH (t:Topic)
WHERE t.key STARTS WITH $run + '/'
MATCH (t)<-[s:SUBSCRIBES]-(p:Peer)
WHERE s.valid_from <= $at AND s.valid_to > $at
WITH t, p, collect(s)[0] AS s ORDER BY p.id
WITH t, collect(s) AS subscriptions, collect(p) AS subscribers
ORDER BY size(subscribers) DESC, t.id
LIMIT $k
RETURN t AS topic, subscriptions[0..$peers] AS subscriptions, subscribers[0..$peers] AS subscribers
