// Take the next turn of a growth; the lock on the run keeps all others waiting.
//
// $run run – the run
// $grower string – who grows it
// $turn count – which turn it is
//
// -> mine: whether it still grows the run
// -> turn: which turn was next
MATCH (r:Run {key: $run})
SET r.locked = true
WITH r, coalesce(r.grower = $grower, false) AND r.state = 'complete' AS mine, r.turn AS turn
SET r.turn = CASE WHEN mine AND turn = $turn THEN turn + 1 ELSE turn END
REMOVE r.locked
RETURN mine, turn
