// How the subscribers of each topic differ between two times, whatever happened in between.
//
// needs: subscriptions
// partition: $before, $after
//
// $run run – the run
// $before tick ticks – first time to compare
// $after tick ticks – second time to compare
//
// -> topic: the topic
// -> before: its subscribers at $before
// -> after: its subscribers at $after
// -> came: subscribers only at $after
// -> went: subscribers only at $before, whether still present or not
// -> stayed: subscribers at both times
MATCH (t:Topic)
WHERE t.key STARTS WITH $run + '/'
CALL (t) {
  MATCH (t)<-[s:SUBSCRIBES]-(p:Peer)
  WITH p, max(CASE WHEN s.valid_from <= $before AND s.valid_to > $before THEN 1 ELSE 0 END) AS old,
       max(CASE WHEN s.valid_from <= $after AND s.valid_to > $after THEN 1 ELSE 0 END) AS new
  RETURN sum(old) AS before, sum(new) AS after, sum(old * new) AS stayed
}
RETURN t.name AS topic, before, after, after - stayed AS came, before - stayed AS went, stayed
ORDER BY came + went DESC, t.id
