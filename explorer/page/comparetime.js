/** One clock for two runs: by the time since each began, or by the number of their intervals. */

import { number } from "./numbers.js";
import { duration, firstTick, intervalOf, lastTick, nice, sampled, ticks } from "./time.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 100]; // intervals of the first run per second
const MARKS = 6;

/** Where each run is on the common clock, and what it is at a place there. */
export class Pair {
  /** `later` = the second run is shown so many of its intervals later. */
  constructor(runs, by, later) {
    this.clocks = runs.map(({ clock }) => clock);
    this.later = [0, later];
    this.knowsTime = this.clocks.every(({ tick_us }) => tick_us != null);
    this.by = this.knowsTime ? by : "interval";
  }

  /** Places per tick, and per interval, of a run. */
  _unit(side) {
    const { ticks: perInterval, tick_us } = this.clocks[side];
    return this.by === "time" ? { tick: tick_us, interval: perInterval * tick_us }
      : { tick: 1 / perInterval, interval: 1 };
  }

  /** The last place of a run. */
  last(side) {
    const clock = this.clocks[side], { interval } = this._unit(side);
    return (clock.last - clock.first + 1 - this.later[side]) * interval - 1;
  }

  /** The tick of a run at a place; its last one where it has ended. By interval: where it is sampled. */
  tick(side, at) {
    const clock = this.clocks[side], { tick } = this._unit(side);
    const begin = firstTick(clock) + this.later[side] * clock.ticks;
    const found = this.by === "time" ? begin + Math.floor(at / tick)
      : sampled(clock, intervalOf(clock, begin) + at);
    return Math.min(found, lastTick(clock));
  }

  /** The place of a tick of a run. */
  place(side, tick) {
    const clock = this.clocks[side], { tick: unit } = this._unit(side);
    const since = tick - firstTick(clock) - this.later[side] * clock.ticks;
    return this.by === "time" ? since * unit : Math.floor(since / clock.ticks);
  }

  /** The place at which an interval of a run begins; by interval, a bar is around its place. */
  edge(side, interval) {
    const { interval: unit } = this._unit(side), { first } = this.clocks[side];
    return (interval - first - this.later[side]) * unit - (this.by === "time" ? 0 : 0.5);
  }

  /** A window of the common clock in ticks of a run. */
  window(side, length) {
    return length / this._unit(side).tick;
  }

  /** The common clock as one of a run, for lengths of windows. */
  get clock() {
    const { interval } = this._unit(0);
    return { first: 0, last: Math.ceil(Math.max(this.last(0), this.last(1)) / interval), ticks: interval,
      tick_us: this.by === "time" ? 1 : null };
  }

  hasEnded(side, at) {
    return at > this.last(side);
  }

  /** The scale of the clock (clock.js). */
  get scale() {
    const last = Math.max(this.last(0), this.last(1), 0);
    const { interval, tick } = this._unit(0);
    const end = (count) => Math.max((count + 1) * interval - (this.by === "time" ? tick : 1), 0);
    const within = (at) => Math.min(Math.max(Math.round(at), 0), last);
    const said = this.by === "time" ? (at) => [duration(at), "since the start"]
      : (at) => [`interval ${number(at + 1)}`, "since the start"];
    return {
      first: 0, last, begin: Math.min(end(0), last), unit: interval, within, said,
      speeds: SPEEDS.map((value) => [value, `${value}×`]), speed: 5, pace: "Speed",
      about: "Intervals per second", label: "Time of both runs",
      stepped: (at, count) => {
        const here = Math.floor(at / interval);
        const isEarly = count > 0 && at < end(here) ? 1 : 0;
        return within(end(here + count - isEarly));
      },
      spoken: (at) => said(at).join(" "),
      marks: (...ends) => {
        const [from, to] = ends.map((at) => Math.floor(at / interval));
        return ticks(from, to, Math.max(nice((to - from) / MARKS), 1)).map((count) =>
          this.by === "time" ? [count * interval, duration(count * interval)] : [count, number(count + 1)]);
      },
      words: {
        begin: "Back to the start", back: "One interval back", forward: "One interval forward",
        change: "Next change",
      },
    };
  }
}
