/** Curves of metrics of whole overlays, under the clock on the same axis, and which to show. */

import { curve, ends } from "./curves.js";
import { checkbox, fill, h, id } from "./dom.js";
import { number, title } from "./numbers.js";
import { intervalOf, sampled } from "./time.js";

export class MetricCurves {
  /**
   * `sides` have a `run` each, `place(tick)` on the clock, and `skip`, the intervals that are left
   * out at its begin. `choose(names)` is called when other curves are chosen.
   */
  constructor(sides, clock, choose) {
    this._clock = clock;
    this._choose = choose;
    this._curves = [];
    this._menu = h("div", { class: "menu" });
    this.setSides(sides);
    clock.add(h("details", { class: "chooser" }, h("summary", {}, "Curves"), this._menu));
  }

  setSides(sides) {
    this._sides = sides;
    const [first, ...others] = sides.map(({ run }) => run.facts.columns.overlay);
    this.columns = first.filter(({ name }) =>
      others.every((columns) => columns.some((column) => column.name === name)));
  }

  /** Show these metrics. */
  async setNames(names) {
    fill(this._menu, this.columns.map(({ name, meaning }) => {
      const box = checkbox(title(name), names.includes(name), (on) =>
        this._choose(on ? [...names, name] : names.filter((other) => other !== name)));
      box.title = meaning;
      return box;
    }));
    this._asked = names;
    const values = await Promise.all(names.map((name) =>
      Promise.all(this._sides.map(({ run, skip }) => run.curve(name).then((all) => all.subarray(skip))))));
    if (this._asked !== names) return; // others were chosen meanwhile
    this._curves = names.map((name, i) => ({ name, values: values[i] }));
    this.place();
  }

  /** Draw the curves where the axis has their intervals now. */
  place() {
    this._curves = this._curves.map(({ name, values }) => this._curve(name, values));
    fill(this._clock.rows, this._curves.map(({ row }) => row));
    if (this._ticks) this.show(this._ticks);
  }

  /** Show the values at a tick of each side; null = it has ended. */
  show(ticks) {
    this._ticks = ticks;
    for (const { name, shown } of this._curves) {
      this.at(name).forEach((value, side) => (shown[side].textContent = number(value)));
    }
  }

  /** The values of a metric that are shown, one for each side; undefined before they have come. */
  at(name) {
    const values = this._curves.find((one) => one.name === name)?.values;
    return this._sides.map(({ run, skip }, side) => {
      const tick = this._ticks[side];
      return tick === null ? NaN : values?.[side][intervalOf(run.clock, tick) - run.clock.first - skip];
    });
  }

  _curve(name, values) {
    const meaning = this.columns.find((column) => column.name === name)?.meaning ?? "";
    const all = values.map(ends).filter(Boolean);
    const within = all.length
      ? { low: Math.min(...all.map(({ low }) => low)), high: Math.max(...all.map(({ high }) => high)) } : null;
    const range = within ? `${number(within.low)} to ${number(within.high)}` : "unknown";
    const shown = values.map((_, side) => h("strong", { class: `side-${side}` }));
    const text = id("curve");
    const row = h(
      "div", { class: "row" },
      h("div", { class: "gutter", id: text, title: meaning },
        h("span", { class: "name" }, title(name)), h("span", { class: "shown" }, shown),
        h("span", { class: "quiet" }, range)),
      this._clock.track(values.map((of, side) => this._drawing(of, within, side)),
        { "aria-labelledby": text }),
    );
    return { name, row, values, shown };
  }

  /**
   * The curve of the intervals that the axis shows. Its values are at the ends of the intervals, which
   * are not those of the axis.
   */
  _drawing(values, within, side) {
    const { run: { clock }, place, skip } = this._sides[side];
    const share = (i) => this._clock.share(place(sampled(clock, clock.first + skip + i)));
    const first = Math.max(values.findIndex((_, i) => share(i + 1) >= 0), 0);
    const last = Math.max(values.findLastIndex((_, i) => share(i - 1) <= 1), first);
    const drawing = curve(values.subarray(first, last + 1), {}, within);
    const [from, to] = [first, last].map((i) => 100 * share(i));
    drawing.classList.add(`side-${side}`);
    drawing.style.left = `${from}%`;
    drawing.style.width = `${to - from}%`;
    return drawing;
  }
}
