/**
 * Where the peers of a message are: in columns by hop, along their delays, or in lanes by arrival.
 * Rows of the columns come from the server, as in the figure of `vizpub plot --kind tree`.
 */

import { elapsed } from "./messagetime.js";
import { amount, number } from "./numbers.js";
import { nice, ticks } from "./time.js";

const HEIGHT = 1000;
const REACHED = 0.9; // of the width; beyond it are those that missed it, or whose time is unknown

/** Places of the peers in a layout, around the middle, and lines that explain them. */
export function placesOf(way, layout, aspect) {
  const { message } = way;
  const width = HEIGHT * Math.max(aspect, 0.4);
  const rows = layout === "race" ? lanes(way) : message.peers.map(({ row }) => row);
  const again = layout === "hops" ? message.again : [];
  const most = Math.max(1, ...rows, ...again.map(({ row }) => row));
  const { share, guides, last } = layout === "hops" ? columns(message) : delays(way);
  const x = (part) => (part - 0.5) * width;
  const single = !again.length && rows.every((row) => row === rows[0]);
  const y = (row) => (single ? 0 : (row / most - 0.5) * HEIGHT);
  return {
    width, height: HEIGHT, layout,
    places: message.peers.map((_, i) => [x(share[i]), y(rows[i])]),
    /** Where the receiver of a later copy stands again, by copy. */
    again: new Map(again.map(({ copy, row, hop }) => [copy, [x(hop / last), y(row)]])),
    guides: guides.map(({ part, text, brief = text }) => ({ x: x(part), text, brief })),
    /** Where a place of the clock is; null in columns, which have none. */
    across: layout === "hops" ? null : (at) => x(REACHED * part(way, at)),
    gap: HEIGHT / most,
  };
}

const part = (way, at) => (at - way.first) / (way.last - way.first || 1);

/** A column for each hop, one for peers of unknown hop, and one for those that missed it. */
function columns({ peers, hops }) {
  const unknown = peers.some(({ role, hop }) => hop < 0 && role !== "missed");
  const missed = peers.some(({ role }) => role === "missed");
  const last = Math.max(hops + unknown + missed, 1);
  const column = ({ role, hop }) => (hop >= 0 ? hop : role === "missed" ? last : hops + 1);
  const count = new Map();
  peers.forEach((peer) => count.set(column(peer), (count.get(column(peer)) ?? 0) + 1));
  const name = (at) =>
    at === last && missed ? "missed" : at > hops ? "hop unknown" : at ? `hop ${at}` : "publisher";
  return {
    last,
    share: peers.map((peer) => column(peer) / last),
    guides: [...count].map(([at, of]) =>
      ({ part: at / last, text: at || of > 1 ? `${name(at)} · ${number(of)}` : name(at),
        brief: at <= hops ? number(at) : at === last && missed ? "missed" : "?" })),
  };
}

/** Along the delay of the first reception. */
function delays(way) {
  const { peers } = way.message;
  const outside = (i) => peers[i].role === "missed" || Number.isNaN(way.had[i]);
  const missed = peers.filter(({ role }) => role === "missed").length;
  const guides = ticks(way.first, way.last, nice((way.last - way.first) / 6)).map((at) =>
    ({ part: REACHED * part(way, at), text: elapsed(at) }));
  if (missed) guides.push({ part: 1, text: `missed · ${number(missed)}` });
  return {
    share: peers.map(({ role }, i) =>
      outside(i) ? (role === "missed" ? 1 : (1 + REACHED) / 2) : REACHED * part(way, way.had[i])),
    guides,
  };
}

/** A lane for each peer in the order of arrival; those that missed it last. */
function lanes(way) {
  const { peers } = way.message;
  const rank = (i) => (Number.isNaN(way.had[i]) ? Infinity : way.had[i]);
  const order = peers.map((_, i) => i).sort((a, b) =>
    (peers[a].role === "missed") - (peers[b].role === "missed") || rank(a) - rank(b) || a - b);
  const found = new Array(peers.length);
  order.forEach((i, lane) => (found[i] = lane));
  return found;
}

/** What a layout shows, in a sentence. */
export const meaningOf = (layout, way) => ({
  hops: `Columns by hop; a peer stands beside those that it reached first`
    + `${way.message.again.length ? ", and again, as a ring, where it passed a later copy on" : ""}. The way has ${amount(way.message.hops, "hop")}.`,
  delay: "To the right by the delay of the first reception.",
  race: "A lane for each peer, the first to have it at the top. A bar reaches from when the sender had it to when it arrived.",
}[layout]);
