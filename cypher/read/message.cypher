// What is known of a message.
//
// $run run – the run
// $message message – the message
//
// -> message: dense index
// -> name: its name in the source
// -> topic: dense index of its topic, null = unknown
// -> publisher: dense index of the peer that published it, null = unknown
// -> time_us: time of the publication, null = unknown
// -> tick: tick of the publication, or of the first reception
MATCH (m:Message {key: $message})
WHERE m.run = $run
RETURN m.id AS message, m.name AS name, m.topic AS topic, m.publisher AS publisher,
       m.time_us AS time_us, m.tick AS tick
