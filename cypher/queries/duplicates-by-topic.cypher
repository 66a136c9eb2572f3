// The cost of dissemination per topic: receptions, and how many of them are duplicates.
//
// needs: receptions, duplicates of a message
// messages: all
//
// $run run – the run
//
// -> topic: the topic
// -> messages: messages published to it
// -> receptions: arrivals of these messages at peers
// -> duplicates: receptions that were not the first at their peer; all receptions at publishers
// -> redundancy: duplicates per first reception, null = no first reception
// -> bytes: of receptions of messages of known size, null = there are none
MATCH (t:Topic)
WHERE t.key STARTS WITH $run + '/'
CALL (t) {
  MATCH (t)<-[:PUBLISHED_ON]-(m:Message)
  RETURN collect(m) AS messages
}
CALL (messages) {
  UNWIND messages AS m
  WITH m, m.id AS id
  CALL (id) {
    MATCH (:Peer)-[h:HOP]->(:Peer)
    USING INDEX h:HOP(run, message)
    WHERE h.run = $run AND h.message = id
    RETURN h
    UNION ALL
    MATCH (:Message)-[h:ARRIVED_FROM_UNKNOWN]->(:Peer)
    USING INDEX h:ARRIVED_FROM_UNKNOWN(run, message)
    WHERE h.run = $run AND h.message = id
    RETURN h
  }
  RETURN count(*) AS receptions, sum(CASE WHEN h.first THEN 1 ELSE 0 END) AS firsts,
         CASE WHEN count(m.bytes) > 0 THEN sum(m.bytes) END AS bytes
}
RETURN t.name AS topic, size(messages) AS messages, receptions, receptions - firsts AS duplicates,
       CASE firsts WHEN 0 THEN null ELSE toFloat(receptions - firsts) / firsts END AS redundancy,
       bytes
ORDER BY duplicates DESC, t.id
