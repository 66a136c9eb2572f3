// How many copies of links a run has, and checksums of what they say.
//
// $run run – the run
// $layers map – a number for each layer
// $topics list<string> – the names of topics by dense index
//
// -> rows: how many there are, of those that name what they are between
// -> first: as vizpub.graphstore.verify.checksums.checksums_of computes it
// -> second: likewise, by the other prime
MATCH (a:Peer)-[r]->(b:Peer)
USING INDEX a:Peer(key)
WHERE a.key STARTS WITH $run + '/' AND type(r) STARTS WITH 'LINK_P'
WITH a, b, properties(r) AS p, toInteger(substring(type(r), 6)) AS partition
WHERE p.run = $run AND b.run = $run
  AND (p.topic IS NULL OR p.topic_name = $topics[p.topic])
WITH size(keys(p)) AS keys,
     [partition, a.id, b.id, coalesce(p.topic, -1), p.valid_from, p.valid_to, p.length_class,
      coalesce($layers[p.layer], -1)] AS integers
WITH reduce(h = keys, x IN integers | (h * h + x % 2147483647) % 2147483647) AS h,
     reduce(g = keys, x IN integers | (g * g + x % 2147483629) % 2147483629) AS g
RETURN count(*) AS rows, sum(h * h % 2147483647) AS first, sum(g * g % 2147483629) AS second
