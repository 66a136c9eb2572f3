// The runs that can be asked: those that are loaded as a whole.
//
// -> run: its name
// -> source: what it was ingested from
// -> protocol: that the peers spoke, null = not told
// -> first: first interval
// -> last: last interval
// -> interval_us: length of an interval, null = unknown
// -> peers: how many
// -> topics: how many
// -> messages: how many
// -> links: lives of links
// -> receptions: arrivals of messages
MATCH (r:Run {state: 'complete'})
RETURN r.name AS run, r.source AS source, r.protocol AS protocol,
       r.first AS first, r.last AS last, r.tick_us * r.ticks_per_interval AS interval_us,
       r.peers AS peers, r.topics AS topics, r.messages AS messages, r.links AS links,
       r.receptions AS receptions
ORDER BY run
