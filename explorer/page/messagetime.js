/** Scales of a message's clock (clock.js): by time, or by hop. */

import { HOP } from "./messagedata.js";
import { number } from "./numbers.js";
import { duration, nice, ticks } from "./time.js";

const WORDS = {
  begin: "Back to the publication", back: "One step back", forward: "One step forward",
  change: "Next arrival",
};

/** A place of the clock as text, as '84.2 ms' or 'hop 2'. */
export const placed = (way, at) => (way.by === "hop" ? `hop ${number(at / HOP)}` : elapsed(at));

/** µs as text, in the unit that fits. */
export function elapsed(us) {
  if (us == null || Number.isNaN(us)) return "–";
  const size = Math.abs(us);
  if (!size) return "0";
  if (size < 1000) return `${number(Math.round(us))} µs`;
  return size < 1e6 ? `${Number((us / 1000).toPrecision(4))} ms` : duration(us);
}

/** The scale along the copies of a message. */
export const scaleOf = (way) => (way.by === "hop" ? byHop(way) : byTime(way));

const within = (way, at) => Math.min(Math.max(Math.round(at), way.first), way.last);

function byTime(way) {
  const length = way.last - way.first;
  const step = nice(length / 50);
  const since = way.sincePublication ? "after the publication" : "after the first arrival";
  return {
    first: way.first, last: way.last, begin: way.first, label: "Time since the publication",
    unit: length / 10, speeds: [[5, "2 s"], [2, "5 s"], [1, "10 s"], [0.5, "20 s"], [1 / 6, "1 min"]],
    speed: 1, pace: "Play in", about: "Time in which all of it plays",
    within: (at) => within(way, at),
    stepped: (at, count) => within(way, at + count * step),
    said: (at) => [elapsed(at), since],
    spoken: (at) => `${elapsed(at)} ${since}`,
    marks: () => ticks(way.first, way.last, nice(length / 6)).map((at) => [at, elapsed(at)]),
    words: WORDS,
  };
}

function byHop(way) {
  const all = Math.ceil(way.last / HOP);
  return {
    first: 0, last: way.last, begin: 0, label: "Hops from the publisher",
    unit: HOP, speeds: [[0.25, "¼ hop/s"], [0.5, "½ hop/s"], [1, "1 hop/s"], [2, "2 hops/s"], [5, "5 hops/s"]],
    speed: 1, pace: "Speed", about: "Hops per second",
    within: (at) => within(way, at),
    stepped: (at, count) =>
      within(way, HOP * (count > 0 ? Math.floor(at / HOP) + count : Math.ceil(at / HOP) + count)),
    said: (at) => [`hop ${number(Math.floor(at / HOP))}`, `of ${number(all)}`],
    spoken: (at) => `hop ${number(at / HOP)} of ${number(all)}`,
    marks: () => ticks(0, all, Math.max(nice(all / 12), 1)).map((hop) => [hop * HOP, number(hop)]),
    words: { ...WORDS, back: "One hop back", forward: "One hop forward" },
  };
}
