// The values of attributes that end in a window, found by their index.
//
// $run run – the run
// $ranges ranges – where in the index they are
//
// -> id: of the relationship
// -> row: as a load writes it
UNWIND $ranges AS x
MATCH (p:Peer)-[r:HAS_ATTRIBUTE]->(:Run)
USING INDEX r:HAS_ATTRIBUTE(run, length_class, valid_from)
WHERE r.run = $run AND r.length_class = x[0] AND x[1] <= r.valid_from <= x[2]
  AND x[3] <= r.valid_to <= x[4]
RETURN elementId(r) AS id,
       [p.key, r.key, r.value, r.number, r.valid_from, r.valid_to, r.length_class] AS row
