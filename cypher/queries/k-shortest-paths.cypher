// The k shortest paths along the links of the overlay at a time.
// A path is a sequence of distinct peers, however many links join two of them. If further
// paths are as long as the last one shown, the choice among them is arbitrary.
//
// needs: presence, links
// partition: $at
//
// $at tick ticks – the time
// $from peer($at) – the peer they start at, present at $at
// $to peer($at) – the peer they end at, present at $at
// $k count=5 paths – maximum number, at least 1
// $layers layers? – layers whose links count, null = all
//
// -> hops: links on the path, 0 from a peer to itself; no row if there is no path
// -> peers: peers on the path, from first to last
MATCH (a:Peer {key: $from})
MATCH (b:Peer {key: $to})
MATCH p = shortestPath((a)-[:LINK*0..]->(b))
WHERE all(r IN relationships(p) WHERE r.valid_from <= $at AND r.valid_to > $at
                                  AND ($layers IS NULL OR r.layer IN $layers))
// An entry is [path, place, taken]: a shortest path among those that are the same up to this
// place and continue from there to none of the peers taken. All others of them branch off there or
// later: there is one such set per place, and each set is searched for its shortest path.
// (Yen 1971, with the sets of Lawler 1972, in which no path is found twice.)
WITH b, reduce(found = [[nodes(p), 0, []]], i IN range(0, $k - 2) |
  CASE WHEN size(found) <= i THEN found ELSE found[..i + 1] + COLLECT {
    CALL (b, found, i) {
      UNWIND found[i + 1..] AS f
      RETURN f
      UNION ALL
      WITH b, found[i][0] AS path, found[i][1] AS start, found[i][2] AS taken
      UNWIND range(start, size(path) - 2) AS j
      WITH b, path[..j] AS before, path[j] AS spur, j,
           [path[j + 1]] + CASE j WHEN start THEN taken ELSE [] END AS taken
      MATCH p = shortestPath((spur)-[:LINK*0..]->(b))
      WHERE none(n IN nodes(p) WHERE n IN before)
        AND all(r IN relationships(p) WHERE r.valid_from <= $at AND r.valid_to > $at
                                        AND ($layers IS NULL OR r.layer IN $layers)
                                        AND NOT (startNode(r) = spur AND endNode(r) IN taken))
      RETURN [before + nodes(p), j, taken] AS f
    }
    RETURN f ORDER BY size(f[0])
  } END) AS found
UNWIND found[..$k] AS f
RETURN size(f[0]) - 1 AS hops, [n IN f[0] | n.name] AS peers
ORDER BY hops, peers
