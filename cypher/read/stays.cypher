// When a peer was present.
//
// $peer string – key of the peer
//
// -> vf: begin of a stay, inclusive
// -> vt: end of the stay, exclusive
MATCH (:Peer {key: $peer})-[s:PRESENT]->(:Run)
RETURN s.vf AS vf, s.vt AS vt
ORDER BY vf
