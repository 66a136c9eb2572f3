// The broadcast channels that carry a page at a time, by the static mapping. Where channels are
// chosen for every update, no link says so, and the query is refused.
//
// needs: links
//
// $run run – the run
// $at tick ticks – the time
// $levels levels($at) – where in the index periods valid at $at can begin
// $topic topic – the page
// $layers layers=carries – layers of the links from the server to the channels of a page
//
// -> channel: a channel
// -> server: the peer that sends the page to it
MATCH (t:Topic {key: $topic})
UNWIND $levels AS l
MATCH (s:Peer)-[r:LINK]->(c:Peer)
USING INDEX r:LINK(run, length_class, valid_from)
WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $at
  AND r.valid_to > $at AND r.topic = t.id AND r.layer IN $layers
WITH DISTINCT s, c
RETURN c.name AS channel, s.name AS server
ORDER BY c.id, s.id
