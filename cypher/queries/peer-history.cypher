// Everything known about a peer, in order of time: presence, links, subscriptions, roles,
// attributes, messages.
//
// messages: all
//
// $peer peer – the peer
// $layers layers? – layers whose links count, null = all
//
// -> valid_from: tick at which it begins; of a publication not reported, the first reception's
// -> valid_to: tick at which it ends, null = it does not
// -> what: present, links to, linked from, subscribes, plays, has or publishes
// -> other: the other peer, the topic, the role, the attribute with its value, or the message
// -> layer: of the link
// -> topic: topic that the link serves, the role is for, or the message was published to
MATCH (p:Peer {key: $peer})
CALL (p) {
  MATCH (p)-[r:PRESENT]->(:Run)
  RETURN 'present' AS what, null AS other, null AS layer, null AS topic,
    r.valid_from AS valid_from, r.valid_to AS valid_to
  UNION ALL
  MATCH (p)-[r:LINK]-(n:Peer)
  WHERE $layers IS NULL OR r.layer IN $layers
  RETURN CASE WHEN startNode(r) = p THEN 'links to' ELSE 'linked from' END AS what,
         n.name AS other, r.layer AS layer, r.topic_name AS topic, r.valid_from AS valid_from,
           r.valid_to AS valid_to
  UNION ALL
  MATCH (p)-[r:SUBSCRIBES]->(t:Topic)
  RETURN 'subscribes' AS what, t.name AS other, null AS layer, null AS topic,
    r.valid_from AS valid_from, r.valid_to AS valid_to
  UNION ALL
  MATCH (p)-[r:HAS_ROLE]->(of:Topic|Run)
  RETURN 'plays' AS what, r.role AS other, null AS layer,
         CASE WHEN of:Topic THEN of.name END AS topic, r.valid_from AS valid_from,
           r.valid_to AS valid_to
  UNION ALL
  MATCH (p)-[r:HAS_ATTRIBUTE]->(:Run)
  RETURN 'has' AS what, r.key + '=' + r.value AS other, null AS layer, null AS topic,
    r.valid_from AS valid_from, r.valid_to AS valid_to
  UNION ALL
  MATCH (p)-[:PUBLISHED]->(m:Message)
  OPTIONAL MATCH (m)-[:PUBLISHED_ON]->(t:Topic)
  RETURN 'publishes' AS what, m.name AS other, null AS layer, t.name AS topic, m.tick AS valid_from,
         m.tick + 1 AS valid_to
}
WITH what, other, layer, topic, valid_from, max(valid_to) AS valid_to
RETURN valid_from, nullIf(valid_to, 9223372036854775807) AS valid_to, what, other, layer, topic
ORDER BY valid_from, what, other, layer, topic
