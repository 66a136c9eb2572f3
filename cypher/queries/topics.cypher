// The topics at a time, those with the most subscribers first.
//
// needs: subscriptions, links
// partition: $at
// messages: $at
//
// $run run – the run
// $at tick ticks – the time
// $levels levels($at) – where in the index periods valid at $at can begin
// $layers layers? – layers whose links count, null = all
//
// -> topic: the topic
// -> subscribers: peers that subscribe to it
// -> rendezvous: peers in that role for it at that time, null = roles are not reported
// -> links: links between subscribers, whatever topic they serve
// -> messages: messages published to it until that time, null = publications are not reported
// -> publishers: number of peers known to have published these; null likewise
CALL () {
  MATCH (t:Topic)
  WHERE t.key STARTS WITH $run + '/'
  CALL (t) {
    MATCH (t)<-[s:SUBSCRIBES]-(p:Peer)
    WHERE s.valid_from <= $at AND s.valid_to > $at
    RETURN count(DISTINCT p) AS subscribers
  }
  CALL (t) {
    MATCH (t)<-[r:HAS_ROLE {role: 'rendezvous'}]-(p:Peer)
    WHERE r.valid_from <= $at AND r.valid_to > $at
    WITH p ORDER BY p.id
    RETURN collect(DISTINCT p.name) AS rendezvous
  }
  CALL (t) {
    MATCH (t)<-[:PUBLISHED_ON]-(m:Message)
    WHERE m.tick <= $at
    OPTIONAL MATCH (p:Peer)-[:PUBLISHED]->(m)
    RETURN count(m) AS messages, count(DISTINCT p) AS publishers
  }
  RETURN t, subscribers, rendezvous, 0 AS links, messages, publishers
  UNION ALL
  UNWIND $levels AS l
  MATCH (a:Peer)-[r:LINK]->(b:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $at
    AND r.valid_to > $at
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH DISTINCT a, b
  MATCH (a)-[one:SUBSCRIBES]->(t:Topic)<-[other:SUBSCRIBES]-(b)
  WHERE one.valid_from <= $at AND one.valid_to > $at AND other.valid_from <= $at
    AND other.valid_to > $at
  WITH DISTINCT a, b, t
  RETURN t, 0 AS subscribers, [] AS rendezvous, count(*) AS links, 0 AS messages, 0 AS publishers
}
WITH t, sum(subscribers) AS subscribers, sum(links) AS links, sum(messages) AS messages,
     sum(publishers) AS publishers, reduce(all = [], some IN collect(rendezvous) | all + some)
     AS rendezvous
MATCH (r:Run {key: $run})
WITH *, CASE WHEN coalesce('publications' IN r.known, true) THEN 1 END AS known_messages
RETURN t.name AS topic, subscribers,
       CASE WHEN coalesce('roles' IN r.known, true) THEN rendezvous END AS rendezvous,
       links, known_messages * messages AS messages, known_messages * publishers AS publishers
ORDER BY subscribers DESC, t.id
