// The subscribers a message never reached: present and subscribed when it was published.
// Nobody is named of a message whose publication nobody told: who subscribed then is not known.
//
// needs: missed, who was to get a message
//
// $message message – the message
//
// -> peer: a subscriber, not the publisher, without a reception
MATCH (:Message {key: $message})-[:MISSED]->(p:Peer)
RETURN p.name AS peer
ORDER BY p.id
