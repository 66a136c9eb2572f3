/** Commands of vizpub, SQL and Cypher that give what the page shows. */

import { intervalOf, sampled } from "./time.js";

/** A command as a shell takes it. Names that begin with a dash come last: they are no options. */
export function shellCommand(words, names = [], options = []) {
  const isDashed = names.some((name) => name.startsWith("-"));
  const ordered = isDashed ? [...words, ...options, "--", ...names] : [...words, ...names, ...options];
  return ordered.map((word) =>
    (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(" ");
}

const sqlText = (text) => `'${text.replaceAll("'", "''")}'`;
const cypherText = JSON.stringify;

/** A tick as `--at` takes it. */
function timeText(clock, tick) {
  const interval = intervalOf(clock, tick);
  return tick === sampled(clock, interval) || clock.tick_us === null ? String(interval) : `${tick * clock.tick_us}us`;
}

/** The layers that commands name; null = all that the run has. */
function namedLayers({ layers, counted, exported }, chosen) {
  const listed = chosen ?? counted;
  return exported?.layers || layers.some((layer) => !listed.includes(layer)) ? listed : null;
}

/** What gives the values and neighbours of a peer at a tick, over links of the layers (null = of those
 * that the metrics count): [word, text] pairs. */
export function peerCommands(facts, peer, tick, layers = null) {
  const { run, clock } = facts, name = facts.peers[peer];
  const listed = namedLayers(facts, layers);
  const holds = (begin, end, layer, quoted) => `${begin} <= ${tick} AND ${end} > ${tick}`
    + (listed ? ` AND ${layer} IN ${quoted}` : "");
  const inSql = holds("valid_from", "valid_to", "layer", `(${listed?.map(sqlText).join(", ")})`);
  const inCypher = holds("link.valid_from", "link.valid_to", "link.layer", `[${listed?.map(cypherText).join(", ")}]`);
  return [
    ["Values", valuesCommand(facts, "peers", ["--peer", name], intervalOf(clock, tick))],
    ["Neighbours, in all topics", shellCommand(["vizpub", "sql", run,
      `SELECT dst_name AS neighbour FROM links WHERE src_name = ${sqlText(name)} AND ${inSql} `
      + `UNION SELECT src_name FROM links WHERE dst_name = ${sqlText(name)} AND ${inSql} ORDER BY ALL`])],
    ["Neighbours, in Cypher", `MATCH (:Peer {run: ${cypherText(run)}, name: ${cypherText(name)}})-[link:LINK]-(other:Peer)
WHERE ${inCypher}
RETURN DISTINCT other.name AS neighbour ORDER BY neighbour`],
  ];
}

/** The command for a shortest path at a tick. */
export function pathCommand(facts, from, to, tick, layers = null) {
  const listed = namedLayers(facts, layers);
  return shellCommand(["vizpub", "path", facts.run], [facts.peers[from], facts.peers[to]],
    ["--at", timeText(facts.clock, tick), ...(listed ? ["--layers", listed.join(",")] : [])]);
}

/** The command that shows a span of intervals, such as "10-20". */
export const exploreCommand = (run, span) => {
  const [first, last] = span.split("-");
  return shellCommand(["vizpub", "explore"], [run], ["--from", first, "--to", last]);
};

/** The command that compares runs. */
export const compareCommand = (runs) => shellCommand(["vizpub", "compare"], runs);

/** What gives the values and links of a peer, in an interval or at all times. */
export function peerHistoryCommands(facts, { peer, interval }) {
  const { run } = facts, name = facts.peers[peer], { sql, cypher } = holding(facts, interval);
  return [
    ["Values", valuesCommand(facts, "peers", ["--peer", name], interval)],
    ["Links", shellCommand(["vizpub", "sql", run,
      `FROM links WHERE (src_name = ${sqlText(name)} OR dst_name = ${sqlText(name)})${sql} ORDER BY valid_from, src, dst, layer`])],
    ["Links, in Cypher", `MATCH (:Peer {run: ${cypherText(run)}, name: ${cypherText(name)}})-[period:LINK]-(:Peer)${cypher}
RETURN startNode(period).name AS src, endNode(period).name AS dst, ${PERIOD}`],
  ];
}

/** What gives the values and subscribers of a topic, in an interval or at all times. */
export function topicCommands(facts, { topic, interval }) {
  const { run } = facts, name = facts.topics[topic], { sql, cypher } = holding(facts, interval);
  return [
    ["Values", valuesCommand(facts, "topics", ["--topic", name], interval)],
    ...(interval === null ? [] : [["Subscribers and the links between them",
      shellCommand(["vizpub", "topic", run], [name], ["--at", String(interval)])]]),
    ["Subscribers", shellCommand(["vizpub", "sql", run,
      `FROM subscriptions WHERE topic_name = ${sqlText(name)}${sql} ORDER BY valid_from, peer`])],
    ["Subscribers, in Cypher", `MATCH (peer:Peer)-[period:SUBSCRIBES]->(:Topic {key: ${cypherText(`${run}/${topic}`)}})${cypher}
RETURN peer.name AS peer, period.valid_from AS valid_from, period.valid_to AS valid_to ORDER BY valid_from, peer`],
  ];
}

/** What gives the validity periods of the links between two peers, and the copies that came over them. */
export function linkCommands(facts, { src, dst, interval }) {
  const { run, peers, columns } = facts, { sql, cypher } = holding(facts, interval);
  const between = (one, other) => [[src, dst], [dst, src]].map(([a, b]) =>
    `(${one} = ${sqlText(peers[a])} AND ${other} = ${sqlText(peers[b])})`).join(" OR ");
  const peer = (place) => `(:Peer {run: ${cypherText(run)}, name: ${cypherText(peers[place])}})`;
  const query = (text) => shellCommand(["vizpub", "sql", run, text]);
  const within = interval === null ? "" : ` AND "interval" = ${interval}`;
  return [
    ["Validity periods", query(`FROM links WHERE (${between("src_name", "dst_name")})${sql} ORDER BY valid_from, src, dst, layer`)],
    ...(columns.links.length
      ? [["Copies", query(`FROM receptions WHERE (${between("previous_hop_name", "peer_name")})${within} ORDER BY ALL`)]] : []),
    ["Validity periods, in Cypher", `MATCH ${peer(src)}-[period:LINK]-${peer(dst)}${cypher}
RETURN startNode(period).name AS src, endNode(period).name AS dst, ${PERIOD}`],
  ];
}

const PERIOD = `period.layer AS layer, period.topic_name AS topic,
  period.valid_from AS valid_from, period.valid_to AS valid_to ORDER BY valid_from, src, dst, layer`;

const valuesCommand = ({ run }, table, chosen, interval) => shellCommand(["vizpub", "metrics", run, table, ...chosen,
  ...(interval === null ? [] : ["--from", String(interval), "--to", String(interval)])]);

/** The conditions that a validity period holds at the end of an interval; null = at any time. */
function holding({ clock }, interval) {
  if (interval === null) return { sql: "", cypher: "" };
  const tick = sampled(clock, interval);
  return {
    sql: ` AND valid_from <= ${tick} AND valid_to > ${tick}`,
    cypher: `\nWHERE period.valid_from <= ${tick} AND period.valid_to > ${tick}`,
  };
}
