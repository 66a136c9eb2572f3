// The links at a time with the topics to which both ends subscribe, whatever topics they serve.
//
// needs: subscriptions, links
// partition: $at
//
// $run run – the run
// $at tick ticks – the time
// $levels levels($at) – where in the index periods valid at $at can begin
// $topics string? – only links that share a topic whose whole name matches this regular expression
// $layers layers? – layers whose links count, null = all
//
// -> src: peer that holds the link
// -> dst: peer it leads to
// -> layers: layers of the links from src to dst
// -> shared: topics to which both subscribe, by name
UNWIND $levels AS l
MATCH (a:Peer)-[r:LINK]->(b:Peer)
USING INDEX r:LINK(run, length_class, valid_from)
WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $at
  AND r.valid_to > $at
  AND ($layers IS NULL OR r.layer IN $layers)
WITH a, b, r ORDER BY r.layer
WITH a, b, collect(DISTINCT r.layer) AS layers
WITH a, b, layers, COLLECT {
  MATCH (a)-[one:SUBSCRIBES]->(t:Topic)<-[other:SUBSCRIBES]-(b)
  WHERE one.valid_from <= $at AND one.valid_to > $at AND other.valid_from <= $at
    AND other.valid_to > $at
  WITH DISTINCT t.name AS name ORDER BY name
  RETURN name
} AS shared
WHERE $topics IS NULL OR any(topic IN shared WHERE topic =~ $topics)
RETURN a.name AS src, b.name AS dst, layers, shared
ORDER BY a.id, b.id
