// A topic's part of the overlay at a time: its subscribers and the links between them.
//
// needs: subscriptions, links
//
// $at tick ticks – the time
// $topic topic – the topic
// $layers layers? – layers whose links count, null = all
// $peers count=60 peers – how many to draw at most
//
// -> peer: a subscriber
// -> links: to other subscribers, one for each of them
MATCH (:Topic {key: $topic})<-[s:SUBSCRIBES]-(p:Peer)
WHERE s.valid_from <= $at AND s.valid_to > $at
WITH DISTINCT p ORDER BY p.id LIMIT $peers
WITH collect(p) AS drawn
UNWIND drawn AS peer
RETURN peer, COLLECT {
  MATCH (peer)-[r:LINK]->(b:Peer)
  WHERE r.valid_from <= $at AND r.valid_to > $at AND b IN drawn
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH b, min(elementId(r)) AS id, collect(r) AS links
  RETURN [r IN links WHERE elementId(r) = id][0]
} AS links
