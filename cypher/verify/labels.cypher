// How many peers of a run have a label, and checksums of which.
//
// $run run – the run
//
// -> label: of these peers
// -> rows: how many there are
// -> first: as vizpub.graphstore.verify.checksums.checksums_of_ids computes it
// -> second: likewise, by the other prime
MATCH (n:Peer)
USING INDEX n:Peer(key)
WHERE n.key STARTS WITH $run + '/'
UNWIND labels(n) AS label
WITH label, CASE WHEN n.id IS :: INTEGER NOT NULL THEN n.id ELSE -1 END AS id
WITH label, reduce(h = 1, x IN [id] | (h * h + x % 2147483647) % 2147483647) AS h,
     reduce(g = 1, x IN [id] | (g * g + x % 2147483629) % 2147483629) AS g
RETURN label, count(*) AS rows,
       sum(h * h % 2147483647) AS first, sum(g * g % 2147483629) AS second
