// All roles of a run, found from the topics and the run, which have fewer relationships than peers.
//
// $run run – the run
//
// -> id: of the relationship
// -> row: as a load writes it
MATCH (t:Topic)<-[r:HAS_ROLE]-(p:Peer)
WHERE t.key STARTS WITH $run + '/'
RETURN elementId(r) AS id, [p.key, t.key, r.role, r.valid_from, r.valid_to] AS row
UNION ALL
MATCH (:Run {key: $run})<-[r:HAS_ROLE]-(p:Peer)
RETURN elementId(r) AS id, [p.key, null, r.role, r.valid_from, r.valid_to] AS row
