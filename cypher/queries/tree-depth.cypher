// The tree of a topic in each interval: its roots, number of peers and depth. All are null if
// there is no link and roles are not reported.
//
// needs: links
//
// $run run – the run
// $topic topic – the topic
// $from tick ticks – first time, inclusive
// $to tick($from) ticks – last time, inclusive
// $levels levels($from) – where in the index periods valid at $from can begin
// $layers layers=tree – layers whose links lead from a child to its parent
//
// -> interval: the interval, at its end
// -> roots: its rendezvous; if none is ever reported, parents that have no parent
// -> peers: peers in the tree, including the roots
// -> depth: links from the root to the peer farthest from it, null = there is no root
// -> detached: peers whose links do not lead to a root
MATCH (t:Topic {key: $topic})
CALL (t) {
  UNWIND $levels AS l
  MATCH (child:Peer)-[r:LINK]->(parent:Peer)
  USING INDEX r:LINK(run, length_class, valid_from)
  WHERE r.run = $run AND r.length_class = l[0] AND r.valid_from > l[1] AND r.valid_from <= $to
    AND r.valid_to > $from
    AND r.topic = t.id AND ($layers IS NULL OR r.layer IN $layers)
  RETURN collect([child.id, parent.id, r.valid_from, r.valid_to]) AS links
}
CALL (t) {
  MATCH (t)<-[r:HAS_ROLE {role: 'rendezvous'}]-(p:Peer)
  RETURN collect([p.id, r.valid_from, r.valid_to]) AS reported
}
MATCH (run:Run {key: $run})
UNWIND range($from / run.ticks_per_interval, $to / run.ticks_per_interval) AS number
MATCH (i:Interval {key: $run + '/' + toString(number)})
WHERE i.t >= $from AND i.t <= $to
WITH run, i, reported, [x IN links WHERE x[2] <= i.t AND x[3] > i.t] AS links
WITH i, links, [x IN links | x[0]] AS children, [x IN links | x[1]] AS parents,
     [x IN reported WHERE x[1] <= i.t AND x[2] > i.t | x[0]] AS now,
     size(reported) > 0 AS is_reported,
     CASE WHEN size(links) > 0 OR coalesce('roles' IN run.known, true) THEN 1 END AS known
WITH i, links, children, parents, known,
     CASE WHEN is_reported THEN now ELSE [p IN parents WHERE NOT p IN children] END AS roots
WITH i, links, known, COLLECT { UNWIND roots AS p RETURN DISTINCT p ORDER BY p } AS roots,
     COLLECT { UNWIND roots + parents + children AS p RETURN DISTINCT p } AS peers
WITH i, known, peers, roots, reduce(found = [p IN roots | [p, 0]], depth IN range(1, size(links)) |
  CASE WHEN found[-1][1] < depth - 1 THEN found ELSE found + COLLECT {
    WITH [f IN found | f[0]] AS seen, [f IN found WHERE f[1] = depth - 1 | f[0]] AS last
    UNWIND [x IN links WHERE x[1] IN last AND NOT x[0] IN seen | x[0]] AS p
    RETURN DISTINCT [p, depth]
  } END) AS found
WITH i, known, peers, found, COLLECT {
  UNWIND roots AS id
  MATCH (p:Peer {key: $run + '/' + toString(id)})
  RETURN p.name
} AS roots
RETURN i.i AS interval, CASE known WHEN 1 THEN roots END AS roots, known * size(peers) AS peers,
       found[-1][1] AS depth, known * (size(peers) - size(found)) AS detached
ORDER BY interval
