/** What begins and ends in each interval, as bars under the slider on its axis. */

import { fill, h, id, svg } from "./dom.js";
import { number } from "./numbers.js";
import { firstTick, intervalOf, lastTick } from "./time.js";

const MOST_BARS = 600;

export class EventStrip {
  constructor(run, clock) {
    this._run = run;
    this._clock = clock;
    this._lanes = [];
  }

  /** Count what begins and ends in an overlay; `publications` has their number in each interval. */
  setOverlay(overlay, publications) {
    const lanes = [
      ["Peers", "that appear, and that disappear", ...this._changes(overlay, overlay.peers)],
      ...(overlay.knowsLinks ? [["Links", "that begin, and that end", ...this._changes(overlay, overlay.pairs)]] : []),
      ...(publications.some((count) => !Number.isNaN(count)) ? [["Publications", "of messages, in all topics", publications, null]] : []),
    ];
    this._lanes = lanes.map(([name, meaning, up, down]) => ({ name, meaning, up, down, shown: h("strong", {}) }));
    this.place();
  }

  /** Draw the bars where the axis has their intervals now. */
  place() {
    fill(this._clock.strip, this._lanes.map((lane) => this._row(lane)));
    if (this._tick !== undefined) this.show(this._tick);
  }

  /** Show the numbers of the interval of a tick. */
  show(tick) {
    this._tick = tick;
    const { clock } = this._run;
    const place = intervalOf(clock, tick) - clock.first;
    for (const { up, down, shown } of this._lanes) {
      shown.textContent = down ? `+${number(up[place])} −${number(down[place])}` : number(up[place]);
    }
  }

  /** The numbers of begins and ends in each interval. What is there at the first tick was there before. */
  _changes({ times }, { begin, end }) {
    const { clock } = this._run, first = firstTick(clock), last = lastTick(clock);
    return [begin, end].map((ranks) => {
      const counts = new Float64Array(clock.last - clock.first + 1);
      for (const rank of ranks) {
        const tick = times[rank]; // undefined = never
        if (tick > first && tick <= last) counts[intervalOf(clock, tick) - clock.first]++;
      }
      return counts;
    });
  }

  _row({ name, meaning, up, down, shown }) {
    const text = id("lane");
    return h("div", { class: "row" },
      h("div", { class: "gutter", id: text, title: `${name} ${meaning}` }, h("span", { class: "name" }, name), shown),
      this._clock.track(this._bars(up, down), { "aria-labelledby": text }));
  }

  /** Bars of the intervals that the axis shows; many are drawn as one that is as high as the highest. */
  _bars(up, down) {
    const { clock } = this._run;
    const half = clock.ticks === 1 ? 0.5 : 0; // a tick that is an interval has its bar around it
    const share = (interval) => this._clock.share(interval * clock.ticks - half);
    const isVisible = (_, i) => share(clock.first + i + 1) > 0 && share(clock.first + i) < 1;
    const from = Math.max(up.findIndex(isVisible), 0), to = up.findLastIndex(isVisible) + 1;
    const most = Math.sqrt(Math.max(1, ...[up, down].map((counts) => counts?.reduce((a, b) => Math.max(a, b || 0), 0) ?? 0)));
    const step = Math.max(Math.ceil((to - from) / MOST_BARS), 1);
    const height = down ? 50 : 100;
    const bars = (counts, sign) => {
      let path = "";
      for (let i = from; i < to; i += step) {
        const highest = counts.subarray(i, i + step).reduce((a, b) => Math.max(a, b || 0), 0);
        if (highest) path += `M${i - from} ${height}h${step}v${(-sign * height * Math.sqrt(highest) / most).toFixed(1)}h-${step}z`;
      }
      return path;
    };
    const drawing = svg("svg", { viewBox: `0 0 ${Math.max(to - from, 1)} 100`, preserveAspectRatio: "none",
      class: "curve bars", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: bars(up, 1), class: "up" }));
    if (down) drawing.append(svg("path", { d: bars(down, -1), class: "down" }));
    const [left, right] = [from, to].map((i) => 100 * share(clock.first + i));
    Object.assign(drawing.style, { left: `${left}%`, width: `${right - left}%` });
    return drawing;
  }
}
