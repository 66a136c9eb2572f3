/** The run's clock in words and numbers. Times are ticks; ranks are places among its changes. */

import { number } from "./numbers.js";

/** The first and the last tick that can be shown. */
export const firstTick = (clock) => clock.first * clock.ticks;
export const lastTick = (clock) => (clock.last + 1) * clock.ticks - 1;

/** The interval that a tick is in, and the tick at which an interval is sampled: its last. */
export const intervalOf = (clock, tick) => Math.floor(tick / clock.ticks);
export const sampled = (clock, interval) => (interval + 1) * clock.ticks - 1;

/** Where an interval begins on an axis of ticks; a tick that is an interval has its bar around it. */
export const intervalEdge = (clock, interval) => interval * clock.ticks - (clock.ticks === 1 ? 0.5 : 0);

/** The sampling tick so many intervals before or after a tick, within the run. */
export function stepped(clock, tick, intervals) {
  const here = intervalOf(clock, tick);
  const early = intervals > 0 && tick !== sampled(clock, here) ? 1 : 0;
  const found = here + intervals - early;
  return sampled(clock, Math.min(Math.max(found, clock.first), clock.last));
}

export const within = (clock, tick) =>
  Math.min(Math.max(Math.round(tick), firstTick(clock)), lastTick(clock));

/** How many of the ascending values are at most `value`. */
export function upTo(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The part of a clock's scale that its axis shows, `from` and `until` a place; null = all of it. It moves so
 * that it has the place `t`, which plays on from its begin.
 */
export function visiblePart({ first, last }, t, { from, until }) {
  const length = until - from;
  if (from === null || until === null || length <= 0 || length >= last - first) return { from: null, until: null };
  const begin = t > until ? t : t < from ? t - length : from;
  const moved = Math.min(Math.max(begin, first), last - length);
  return { from: moved, until: moved + length };
}

/** 'interval 37', and the time since the start where it is known. */
export function spoken(clock, tick) {
  const interval = `interval ${intervalOf(clock, tick)}`;
  const seconds = since(clock, tick);
  return seconds ? `${interval}, ${seconds}` : interval;
}

/** Time since the start; empty where the length of a tick is unknown. */
export const since = (clock, tick) =>
  clock.tick_us == null ? "" : duration(tick * clock.tick_us);

/** The intervals that a period touches, as '16–34' or 'from 77'; an end that is null is open. */
export function periodText(clock, [begin, end]) {
  const first = intervalOf(clock, begin);
  if (end === null) return `from ${number(first)}`;
  const last = intervalOf(clock, end - 1);
  return first === last ? number(first) : `${number(first)}–${number(last)}`;
}

/** Where a tick is in the run, 0 to 1; null is its end. */
export function shareOf(clock, tick) {
  const first = firstTick(clock), end = lastTick(clock) + 1;
  return tick === null ? 1 : (Math.min(Math.max(tick, first), end) - first) / (end - first);
}

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 100]; // intervals per second
const MARKS = 6;

/** The scale of the run's clock (clock.js). */
export const runScale = (clock) => ({
  first: firstTick(clock), last: lastTick(clock), begin: sampled(clock, clock.first),
  unit: clock.ticks, speeds: SPEEDS.map((value) => [value, `${value}×`]), speed: 5, pace: "Speed",
  about: "Intervals per second", label: "Time",
  within: (tick) => within(clock, tick),
  stepped: (tick, count) => stepped(clock, tick, count),
  said: (tick) => [`interval ${number(intervalOf(clock, tick))}`, since(clock, tick)],
  spoken: (tick) => spoken(clock, tick),
  marks: (from, to) => {
    const [first, last] = [from, to].map((tick) => intervalOf(clock, tick));
    return ticks(first, last, Math.max(nice((last - first) / MARKS), 1))
      .map((interval) => [sampled(clock, interval), number(interval)]);
  },
  words: {
    begin: "Back to the first interval", back: "One interval back",
    forward: "One interval forward", change: "Next change",
  },
});

/** The least of 1, 2, 5, 10, 20, … that is not less. */
export function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((of) => of * power).find((of) => of >= value);
}

/** The multiples of a step from `first` to `last`. */
export function ticks(first, last, step) {
  const found = [];
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) found.push(at);
  return found;
}

/** Microseconds as text, as '1 h 02 min' or '12.503 s'. */
export function duration(us) {
  const seconds = us / 1e6;
  if (seconds < 600) return `${Number(seconds.toFixed(seconds < 1 ? 6 : 3))} s`;
  const tenths = Math.round(seconds * 10);
  const minutes = Math.floor(tenths / 600), rest = (tenths % 600) / 10;
  if (minutes < 120) return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 72 ? `${hours} h ${minutes % 60} min`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
