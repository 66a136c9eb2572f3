// The peers that information from a peer can reach in a time window, and the earliest arrivals.
// Information passes along links and can wait at any peer for any time; a hop begins while the link
// exists and ends $per_hop later. A peer that leaves and returns still has the information.
//
// needs: presence, links
// partition: $from..$to
//
// $run run – the run
// $from tick ticks – start of the window
// $to tick($from) ticks – end of the window, inclusive
// $peer peer($from) – the peer it starts at, present at $from
// $per_hop duration=0 ticks – duration of a hop; 0 = any number of hops fits into a moment
// $direction out|in|both=out – out = along the links, in = against them, both = either way
// $layers layers? – layers whose links count, null = all
//
// -> peer: another peer
// -> arrival: tick of the earliest possible arrival
// -> interval: interval of this tick
// -> hops: smallest number of hops with this arrival
MATCH (run:Run {key: $run})
MATCH (start:Peer {key: $peer})
// Round by round from those that it came to earlier in the last round than in any before:
// [number of a peer, arrival, hops, the peer], one for each.
WITH run, reduce(found = [[start.id, $from, 0, start]], i IN range(1, run.peers) |
  CASE WHEN found[-1][2] < i - 1 THEN found ELSE COLLECT {
    WITH COLLECT {
      CALL (found, i) {
        UNWIND found AS f
        RETURN f
        UNION ALL
        UNWIND [f IN found WHERE f[2] = i - 1] AS f
        WITH f[3] AS p, f[1] AS arrival, i
        CALL (p) {
          MATCH (p)-[r:LINK]->(q:Peer)
          WHERE $direction <> 'in'
          RETURN r, q
          UNION ALL
          MATCH (p)<-[r:LINK]-(q:Peer)
          WHERE $direction <> 'out'
          RETURN r, q
        }
        WITH q, CASE WHEN r.valid_from > arrival THEN r.valid_from ELSE arrival END AS departure,
          r, i
        WHERE r.valid_to > departure AND departure <= $to - $per_hop
          AND ($layers IS NULL OR r.layer IN $layers)
        RETURN DISTINCT [q.id, departure + $per_hop, i, q] AS f
      }
      RETURN f ORDER BY f
    } AS came
    UNWIND range(0, size(came) - 1) AS j
    WITH came[j] AS f, came, j
    WHERE j = 0 OR came[j - 1][0] < f[0]
    RETURN f ORDER BY f[2]
  } END) AS found
UNWIND found AS f
WITH f[3] AS p, f[1] AS arrival, f[2] AS hops, run
WHERE hops > 0
RETURN p.name AS peer, arrival, arrival / run.ticks_per_interval AS interval, hops
ORDER BY arrival, hops, p.id
