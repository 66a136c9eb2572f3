/** What begins and ends in each interval, as bars under the slider on its axis. */

import { fill, h, id, svg } from "./dom.js";
import { number } from "./numbers.js";
import { firstTick, intervalOf, lastTick } from "./time.js";

const MOST_BARS = 600;

export class EventStrip {
  /** `sides` have a `run` each, and `edge(interval)`, the place on the clock at which an interval begins. */
  constructor(sides, clock) {
    this._sides = sides;
    this._clock = clock;
    this._lanes = [];
  }

  /** Follow other places of the same runs. */
  setSides(sides) {
    this._sides = sides;
    this.place();
  }

  /** Count what begins and ends in the overlay of each side, if one is new. */
  async setOverlays(overlays) {
    if (overlays.every((overlay, side) => overlay === this._counted?.[side])) return;
    this._counted = overlays;
    const publications = await Promise.all(this._sides.map(({ run }) =>
      (run.facts.columns.overlay.some(({ name }) => name === "publications") ? run.curve("publications") : [])));
    if (overlays !== this._counted) return;
    const has = (isKnown) => this._sides.every((_, side) => isKnown(side));
    const lanes = [
      ["Peers", "that appear, and that disappear", (side) => this._changes(side, overlays[side].peers)],
      has((side) => overlays[side].knowsLinks)
        && ["Links", "that begin, and that end", (side) => this._changes(side, overlays[side].pairs)],
      has((side) => publications[side].some((count) => !Number.isNaN(count)))
        && ["Publications", "of messages, in all topics", (side) => [publications[side], null]],
    ].filter(Boolean);
    this._lanes = lanes.map(([name, meaning, count]) => ({ name, meaning,
      counts: this._sides.map((_, side) => count(side)), shown: this._sides.map((_, side) => h("strong", { class: `side-${side}` })) }));
    this.place();
  }

  /** Draw the bars where the axis has their intervals now. */
  place() {
    fill(this._clock.strip, this._lanes.map((lane) => this._row(lane)));
    if (this._ticks) this.show(this._ticks);
  }

  /** Show the numbers of the interval of a tick of each side; null = it has ended. */
  show(ticks) {
    this._ticks = ticks;
    for (const { counts, shown } of this._lanes) {
      counts.forEach(([up, down], side) => {
        const { clock } = this._sides[side].run, place = intervalOf(clock, ticks[side]) - clock.first;
        shown[side].textContent = ticks[side] === null ? "–"
          : down ? `+${number(up[place])} −${number(down[place])}` : number(up[place]);
      });
    }
  }

  /** The numbers of begins and ends in each interval. What is there at the first tick was there before. */
  _changes(side, { begin, end }) {
    const { clock } = this._sides[side].run, first = firstTick(clock), last = lastTick(clock);
    const { times } = this._counted[side];
    return [begin, end].map((ranks) => {
      const counts = new Float64Array(clock.last - clock.first + 1);
      for (const rank of ranks) {
        const tick = times[rank]; // undefined = never
        if (tick > first && tick <= last) counts[intervalOf(clock, tick) - clock.first]++;
      }
      return counts;
    });
  }

  _row({ name, meaning, counts, shown }) {
    const text = id("lane");
    const most = Math.max(1, ...counts.flat().map((of) => of?.reduce((a, b) => Math.max(a, b || 0), 0) ?? 0));
    return h("div", { class: "row" },
      h("div", { class: "gutter", id: text, title: `${name} ${meaning}` }, h("span", { class: "name" }, name), shown),
      this._clock.track(counts.map(([up, down], side) => this._bars(side, up, down, most)), { "aria-labelledby": text }));
  }

  /** Bars of the intervals that the axis shows; many are drawn as one that is as high as the highest. */
  _bars(side, up, down, most) {
    const { run: { clock }, edge } = this._sides[side];
    const share = (place) => this._clock.share(edge(clock.first + place));
    const isVisible = (_, place) => share(place + 1) > 0 && share(place) < 1;
    const from = Math.max(up.findIndex(isVisible), 0), to = up.findLastIndex(isVisible) + 1;
    const step = Math.max(Math.ceil((to - from) / MOST_BARS), 1);
    const height = down ? 50 : 100;
    const bars = (counts, sign) => {
      let path = "";
      for (let i = from; i < to; i += step) {
        const highest = counts.subarray(i, i + step).reduce((a, b) => Math.max(a, b || 0), 0);
        if (highest) path += `M${i - from} ${height}h${step}v${(-sign * height * Math.sqrt(highest / most)).toFixed(1)}h-${step}z`;
      }
      return path;
    };
    const drawing = svg("svg", { viewBox: `0 0 ${Math.max(to - from, 1)} 100`, preserveAspectRatio: "none",
      class: `curve bars side-${side}`, "aria-hidden": "true", focusable: "false" },
    svg("path", { d: bars(up, 1), class: "up" }));
    if (down) drawing.append(svg("path", { d: bars(down, -1), class: "down" }));
    const [left, right] = [from, to].map((place) => 100 * share(place));
    Object.assign(drawing.style, { left: `${left}%`, width: `${right - left}%` });
    return drawing;
  }
}
