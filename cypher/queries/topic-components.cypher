// The components of a topic's subscribers at a time. Two subscribers are in one component if
// links between subscribers connect them, in either direction. If you give a publisher or
// rendezvous, its links count too, and its component is the main one.
//
// needs: presence, subscriptions, links
// partition: $at
//
// $at tick ticks – the time
// $topic topic – the topic
// $from peer($at)? – a peer, subscribed or not, present at $at; null = the largest one is main
// $layers layers? – layers whose links count, null = all
//
// -> part: number of the component: the main one first, then by size
// -> subscribers: number of subscribers in it
// -> cut_off: whether it is not the main one
// -> peers: the subscribers in it
MATCH (:Topic {key: $topic})<-[s:SUBSCRIBES]-(p:Peer)
WHERE s.valid_from <= $at AND s.valid_to > $at
WITH DISTINCT p ORDER BY p.id
WITH collect(p) AS subscribers
OPTIONAL MATCH (start:Peer {key: $from})
WITH start, subscribers, CASE
  WHEN start IS NULL OR start IN subscribers THEN subscribers
  ELSE subscribers + start
END AS peers
// A component is named after its peer of the smallest number, which spreads from peer to
// peer, round by round: [number of a peer, least number it heard, in which round, the peer].
WITH start, subscribers, reduce(
  found = [p IN peers | [p.id, p.id, 0, p]], i IN range(1, size(peers)) |
  CASE WHEN found[-1][2] < i - 1 THEN found ELSE COLLECT {
    WITH COLLECT {
      CALL (found, peers, i) {
        UNWIND found AS f
        RETURN f
        UNION ALL
        UNWIND [f IN found WHERE f[2] = i - 1] AS f
        WITH f[3] AS q, f[1] AS least, peers, i
        MATCH (q)-[r:LINK]-(p:Peer)
        WHERE r.valid_from <= $at AND r.valid_to > $at AND p IN peers AND p.id > least
          AND ($layers IS NULL OR r.layer IN $layers)
        RETURN DISTINCT [p.id, least, i, p] AS f
      }
      RETURN f ORDER BY f
    } AS heard
    UNWIND range(0, size(heard) - 1) AS j
    WITH heard[j] AS f, heard, j
    WHERE j = 0 OR heard[j - 1][0] < f[0]
    RETURN f ORDER BY f[2]
  } END) AS found
UNWIND found AS f
WITH f[1] AS least, f[3] AS p, start, subscribers
ORDER BY p.id
WITH start, least, collect(CASE WHEN p IN subscribers THEN p.name END) AS peers,
     sum(CASE p WHEN start THEN 1 ELSE 0 END) AS main
WHERE size(peers) > 0
ORDER BY main DESC, size(peers) DESC, least
WITH start, collect([peers, main]) AS parts
UNWIND range(1, size(parts)) AS part
WITH part, parts[part - 1][0] AS peers, CASE
  WHEN start IS NULL THEN part > 1
  ELSE parts[part - 1][1] = 0
END AS cut_off
RETURN part, size(peers) AS subscribers, cut_off, peers
ORDER BY part
