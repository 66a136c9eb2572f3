/** Curves of metrics of the whole overlay, under the clock on the same axis, and which to show. */

import { curve, ends } from "./curves.js";
import { checkbox, fill, h, id } from "./dom.js";
import { number, title } from "./numbers.js";
import { intervalOf, sampled } from "./time.js";

export class OverlayCurves {
  /** `choose(names)` is called when others are chosen. */
  constructor(run, clock, choose) {
    this._run = run;
    this._clock = clock;
    this._choose = choose;
    this._curves = [];
    this._menu = h("div", { class: "menu" });
    clock.add(h("details", { class: "chooser" }, h("summary", {}, "Curves"), this._menu));
  }

  /** Show these metrics. */
  async setNames(names) {
    const columns = this._run.facts.columns.overlay;
    fill(this._menu, columns.map(({ name, meaning }) => {
      const box = checkbox(title(name), names.includes(name), (on) =>
        this._choose(on ? [...names, name] : names.filter((other) => other !== name)));
      box.title = meaning;
      return box;
    }));
    this._asked = names;
    const found = await Promise.all(names.map((name) => this._run.curve(name)));
    if (this._asked !== names) return; // others were chosen meanwhile
    this._curves = names.map((name, i) => this._curve(columns, name, found[i]));
    fill(this._clock.rows, this._curves.map(({ row }) => row));
    this.show(this._tick);
  }

  /** Show the values at a tick. */
  show(tick) {
    this._tick = tick;
    const place = intervalOf(this._run.clock, tick) - this._run.clock.first;
    for (const { values, shown } of this._curves) shown.textContent = number(values[place]);
  }

  _curve(columns, name, values) {
    const about = columns.find((column) => column.name === name);
    const shown = h("strong", {}), found = ends(values);
    const range = found ? `${number(found.low)} to ${number(found.high)}` : "unknown";
    const text = id("curve");
    const row = h(
      "div", { class: "row" },
      h("div", { class: "gutter", id: text, title: about?.meaning ?? "" },
        h("span", { class: "name" }, title(name)), shown, h("span", { class: "quiet" }, range)),
      this._clock.track(this._placed(curve(values)), { "aria-labelledby": text }),
    );
    return { row, values, shown };
  }

  /** A curve's first value is at the end of the first interval, which is not the axis' begin. */
  _placed(drawing) {
    const from = this._clock.share(sampled(this._run.clock, this._run.clock.first));
    drawing.style.marginLeft = `${100 * from}%`;
    drawing.style.width = `${100 * (1 - from)}%`;
    return drawing;
  }
}
