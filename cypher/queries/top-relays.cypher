// The relays that sent the most copies of messages of topics to which they did not subscribe.
// Only messages published in a time window count, wherever and whenever they went. Peers whose
// subscription at an arrival is unknown come last, without counts.
//
// needs: subscriptions, receptions, previous hops, duplicates of a message
// messages: $to
//
// $run run – the run
// $from tick ticks – start of the window, inclusive
// $to tick($from) ticks – end of the window, exclusive
// $k count=10 peers – maximum number, at least 1
//
// -> peer: the relay
// -> copies: copies that it sent of messages it relayed; null = unknown, like the other counts
// -> receptions: arrivals of these messages at it while it was not subscribed
// -> messages: messages it relayed: it received them while not subscribed, and did not publish them
// -> topics: topics of these messages
MATCH (m:Message)
WHERE m.key STARTS WITH $run + '/' AND m.tick >= $from AND m.tick < $to
CALL (m) {
  CALL (m) {
    MATCH (a:Peer)-[h:HOP]->(b:Peer)
    USING INDEX h:HOP(run, message)
    WHERE h.run = $run AND h.message = m.id
    UNWIND [[a, 1, true], [b, 0, h.subscribed]] AS end
    RETURN end[0] AS p, end[1] AS sent, end[2] AS subscribed
    UNION ALL
    MATCH (:Message)-[h:ARRIVED_FROM_UNKNOWN]->(b:Peer)
    USING INDEX h:ARRIVED_FROM_UNKNOWN(run, message)
    WHERE h.run = $run AND h.message = m.id
    RETURN b AS p, 0 AS sent, h.subscribed AS subscribed
  }
  WITH p, sum(sent) AS sent, sum(CASE WHEN subscribed = false THEN 1 ELSE 0 END) AS unsubscribed,
       sum(CASE WHEN subscribed IS NULL THEN 1 ELSE 0 END) AS unclear
  WHERE unsubscribed + unclear > 0 AND p.id <> coalesce(m.publisher, -1)
  RETURN p, sent, unsubscribed, unclear
}
WITH p, sum(sent) AS copies, sum(unsubscribed) AS receptions, count(*) AS messages,
     count(DISTINCT m.topic) AS topics, CASE WHEN sum(unclear) = 0 THEN 1 END AS known
RETURN p.name AS peer, known * copies AS copies, known * receptions AS receptions,
       known * messages AS messages, known * topics AS topics
ORDER BY copies IS NULL, copies DESC, receptions DESC, p.id
LIMIT $k
