// When a peer was present.
//
// $peer string – key of the peer
//
// -> valid_from: begin of a presence period, inclusive
// -> valid_to: end of the period, exclusive
MATCH (:Peer {key: $peer})-[s:PRESENT]->(:Run)
RETURN s.valid_from AS valid_from, max(s.valid_to) AS valid_to
ORDER BY valid_from
