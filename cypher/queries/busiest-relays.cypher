// The peers that bore most for topics that they did not subscribe to: relays, by copies sent.
// Counted are the messages published in a stretch of time, wherever and whenever they went.
//
// needs: subscriptions, receptions, previous hops, duplicates of a message
//
// $run run – the run
// $from tick ticks – begin of the stretch, inclusive
// $to tick($from) ticks – its end, exclusive
// $k count=10 peers – how many, at least 1
//
// -> peer: the relay
// -> copies: that came from it to others, of messages it relayed
// -> receptions: how often these messages came to it unsubscribed
// -> messages: that it relayed: they came to it unsubscribed, and it did not publish them
// -> topics: that these belong to
MATCH (m:Message)
WHERE m.key STARTS WITH $run + '/' AND m.tick >= $from AND m.tick < $to
CALL (m) {
  CALL (m) {
    MATCH (a:Peer)-[h:HOP]->(b:Peer)
    USING INDEX h:HOP(run, msg)
    WHERE h.run = $run AND h.msg = m.id
    UNWIND [[a, 1, 0], [b, 0, CASE WHEN h.interested = false THEN 1 ELSE 0 END]] AS end
    RETURN end[0] AS p, end[1] AS sent, end[2] AS unsubscribed
    UNION ALL
    MATCH (:Message)-[h:REACHED]->(b:Peer)
    USING INDEX h:REACHED(run, msg)
    WHERE h.run = $run AND h.msg = m.id AND h.interested = false
    RETURN b AS p, 0 AS sent, 1 AS unsubscribed
  }
  WITH p, sum(sent) AS sent, sum(unsubscribed) AS unsubscribed
  WHERE unsubscribed > 0 AND p.id <> coalesce(m.publisher, -1)
  RETURN p, sent, unsubscribed
}
WITH p, sum(sent) AS copies, sum(unsubscribed) AS receptions, count(*) AS messages,
     count(DISTINCT m.topic) AS topics
RETURN p.name AS peer, copies, receptions, messages, topics
ORDER BY copies DESC, receptions DESC, p.id
LIMIT $k
