// The message that came to most peers, to show something of it.
//
// $run run – the run
//
// -> message: key of the message
// -> interval: of its publication
MATCH (m:Message)
WHERE m.key STARTS WITH $run + '/'
WITH m ORDER BY coalesce(m.first_receptions, 0) DESC, m.id
LIMIT 1
RETURN m.key AS message, m.interval AS interval
