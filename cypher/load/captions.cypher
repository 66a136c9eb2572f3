// Give nodes a caption that fits into a circle: the name, or the end of a long one.
//
// Names of one kind often begin alike, so it is the end that tells them apart.
//
// $run run – the run
CALL () {
  MATCH (n:Peer) WHERE n.key STARTS WITH $run + '/' RETURN n, 6 AS fits
  UNION ALL
  MATCH (n:Message) WHERE n.key STARTS WITH $run + '/' RETURN n, 6 AS fits
  UNION ALL
  MATCH (n:Topic) WHERE n.key STARTS WITH $run + '/' RETURN n, 12 AS fits
}
CALL (n, fits) {
  SET n.caption = CASE WHEN size(n.name) <= fits THEN n.name ELSE '…' + right(n.name, 4) END
} IN TRANSACTIONS OF 10000 ROWS
