// The receptions of messages whose previous hop is known, found by their index.
//
// $run run – the run
// $low count – first message
// $high count – the message after the last one
//
// -> id: of the relationship
// -> row: as a load writes it
MATCH (a:Peer)-[r:HOP]->(b:Peer)
USING INDEX r:HOP(run, message)
WHERE r.run = $run AND $low <= r.message < $high
RETURN elementId(r) AS id, [a.key, b.key, r.message, r.hops, r.time_us, r.first, r.subscribed]
       AS row
