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
  return exported?.layers || Object.keys(layers).some((layer) => !listed.includes(layer)) ? listed : null;
}

/** What gives the values and neighbours of a peer at a tick, over links of the layers (null = of those
 * that the metrics count): [word, text] pairs. */
export function peerCommands(facts, peer, tick, layers = null) {
  const { run, clock } = facts, name = facts.peers[peer], interval = String(intervalOf(clock, tick));
  const listed = namedLayers(facts, layers);
  const holds = (begin, end, layer, quoted) => `${begin} <= ${tick} AND ${end} > ${tick}`
    + (listed ? ` AND ${layer} IN ${quoted}` : "");
  const inSql = holds("valid_from", "valid_to", "layer", `(${listed?.map(sqlText).join(", ")})`);
  const inCypher = holds("link.valid_from", "link.valid_to", "link.layer", `[${listed?.map(cypherText).join(", ")}]`);
  return [
    ["Values", shellCommand(["vizpub", "metrics", run, "peers", "--peer", name, "--from", interval, "--to", interval])],
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

/** The command that compares runs. */
export const compareCommand = (runs) => shellCommand(["vizpub", "compare"], runs);
