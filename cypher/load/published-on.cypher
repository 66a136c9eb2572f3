// Link a batch of messages to their topics.
//
// $rows list<list> – [key of the message, key of the topic]
//
// -> rows: how many there are now
UNWIND $rows AS row
MATCH (m:Message {key: row[0]})
MATCH (t:Topic {key: row[1]})
CREATE (m)-[r:PUBLISHED_ON]->(t)
RETURN count(r) AS rows
