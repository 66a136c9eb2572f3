// How much there is of a run: every relationship begins at one of its peers or messages.
//
// $run run – the run
//
// -> peers: dense indexes of peers there may be
// -> messages: of messages
// -> rows: relationships, nodes and entries of the ledger, but for the node of the run
CALL () {
  MATCH (n:Peer)
  WHERE n.key STARTS WITH $run + '/'
  RETURN coalesce(max(n.id) + 1, 0) AS peers, count(n) + sum(COUNT { (n)-->() }) AS of_peers
}
CALL () {
  MATCH (n:Message)
  WHERE n.key STARTS WITH $run + '/'
  RETURN coalesce(max(n.id) + 1, 0) AS messages, count(n) + sum(COUNT { (n)-->() }) AS of_messages
}
RETURN peers, messages,
       of_peers + of_messages
       + COUNT { MATCH (n:Topic) WHERE n.key STARTS WITH $run + '/' }
       + COUNT { MATCH (n:Interval) WHERE n.key STARTS WITH $run + '/' }
       + COUNT { MATCH (n:LoadBatch) WHERE n.key STARTS WITH $run + '|' } AS rows
