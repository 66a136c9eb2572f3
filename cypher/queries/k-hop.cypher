// The peers within k hops of a peer at a time, and the distance of each.
//
// needs: presence, links
// partition: $at
//
// $at tick ticks – the time
// $peer peer($at) – the peer, present at $at
// $hops count=2 hops – largest distance, at least 1
// $direction out|in|both=out – out = along the links, in = against them, both = either way
// $layers layers? – layers whose links count, null = all
//
// -> peer: another peer
// -> hops: links on a shortest path between the two
MATCH (start:Peer {key: $peer})
WITH reduce(found = [[start, 0]], i IN range(1, $hops) |
  CASE WHEN found[-1][1] < i - 1 THEN found ELSE found + COLLECT {
    WITH [f IN found | f[0]] AS seen, COLLECT {
      UNWIND [f IN found WHERE f[1] = i - 1 | f[0]] AS p
      CALL (p) {
        MATCH (p)-[r:LINK]->(q:Peer)
        WHERE $direction <> 'in'
        RETURN r, q
        UNION ALL
        MATCH (p)<-[r:LINK]-(q:Peer)
        WHERE $direction <> 'out'
        RETURN r, q
      }
      WITH r, q
      WHERE r.valid_from <= $at AND r.valid_to > $at AND ($layers IS NULL OR r.layer IN $layers)
      RETURN DISTINCT q
    } AS next
    UNWIND next AS q
    WITH q, seen
    WHERE NOT q IN seen
    RETURN [q, i]
  } END) AS found
UNWIND found[1..] AS f
WITH f[0] AS p, f[1] AS hops
RETURN p.name AS peer, hops
ORDER BY hops, p.id
