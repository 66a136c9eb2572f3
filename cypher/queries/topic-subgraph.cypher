// A topic's part of the overlay at a time: its subscribers and the links between them.
//
// needs: subscriptions, links
// partition: $at
//
// $at tick ticks – the time
// $topic topic – the topic
// $layers layers? – layers whose links count, null = all
//
// -> src: subscriber that holds the link, or a subscriber without links to others
// -> dst: subscriber it leads to, null = src has no link from or to another subscriber
// -> layers: layers of the links from src to dst
// -> topics: topics that they serve
MATCH (:Topic {key: $topic})<-[s:SUBSCRIBES]-(p:Peer)
WHERE s.valid_from <= $at AND s.valid_to > $at
WITH collect(DISTINCT p) AS subscribers
CALL (subscribers) {
  UNWIND subscribers AS a
  MATCH (a)-[r:LINK]->(b:Peer)
  WHERE r.valid_from <= $at AND r.valid_to > $at AND b IN subscribers
    AND ($layers IS NULL OR r.layer IN $layers)
  WITH a, b, r ORDER BY r.topic_name
  WITH a, b, collect(DISTINCT r.layer) AS layers, collect(DISTINCT r.topic_name) AS topics
  WITH a, b, COLLECT { UNWIND layers AS layer RETURN layer ORDER BY layer } AS layers, topics
  RETURN collect([a, b, layers, topics]) AS links
}
CALL (links) {
  UNWIND links AS link
  UNWIND link[0..2] AS p
  RETURN collect(DISTINCT p) AS linked
}
CALL (subscribers, links, linked) {
  UNWIND links AS link
  RETURN link[0] AS a, link[1] AS b, link[2] AS layers, link[3] AS topics
  UNION ALL
  UNWIND subscribers AS a
  WITH a WHERE NOT a IN linked
  RETURN a, null AS b, [] AS layers, [] AS topics
}
RETURN a.name AS src, b.name AS dst, layers, topics
ORDER BY a.id, b.id
