// The runs that are completely loaded.
//
// -> run: its name
// -> source: format that it was ingested from
// -> protocol: protocol of the peers, null = not reported
// -> first: first interval
// -> last: last interval
// -> interval_us: length of an interval, null = unknown
// -> peers: number of peers
// -> topics: number of topics
// -> messages: number of messages
// -> links: validity periods of links
// -> receptions: arrivals of messages
MATCH (r:Run {state: 'complete'})
RETURN r.name AS run, r.source AS source, r.protocol AS protocol,
       r.first AS first, r.last AS last, r.tick_us * r.ticks_per_interval AS interval_us,
       r.peers AS peers, r.topics AS topics, r.messages AS messages, r.links AS links,
       r.receptions AS receptions
ORDER BY run
