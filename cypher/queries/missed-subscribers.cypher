// The eligible peers that never received a message: present and subscribed when it was
// published. There are no rows for a message whose publication was not reported: its eligible
// peers are unknown.
//
// needs: missed, eligible peers of a message
// messages: $message
//
// $message message – the message
//
// -> peer: an eligible peer that never received the message
MATCH (:Message {key: $message})-[:MISSED]->(p:Peer)
RETURN p.name AS peer
ORDER BY p.id
