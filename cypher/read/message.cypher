// A message, found by its name.
//
// $run run – the run
// $message_name string – its id in the source
//
// -> message: dense index
// -> topic: dense index of its topic, null = unknown
// -> publisher: dense index of the peer that published it, null = unknown
// -> time_us: time of the publication, null = unknown
// -> interval: interval of the publication, or of the first reception
MATCH (m:Message {name: $message_name})
WHERE m.run = $run
RETURN m.id AS message, m.topic AS topic, m.publisher AS publisher, m.time_us AS time_us,
       m.interval AS interval
