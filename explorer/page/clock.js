/** The clock: play, step, scrub, speed, loop; and curves below it on the same axis. */

import { curve, ends } from "./curves.js";
import { checkbox, fill, h, icon, id, labelled, select } from "./dom.js";
import { number, title } from "./numbers.js";
import {
  firstTick, intervalOf, lastTick, sampled, since, spoken, stepped, within,
} from "./time.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 100]; // intervals per second
const MARKS = 6;

export class Clock {
  /** `moved(tick)` is called for each new time; `curves(names)` when others are chosen. */
  constructor(run, { moved, paused, curves, change }) {
    this._run = run;
    this._clock = run.clock;
    this._moved = moved;
    this._paused = paused;
    this._choose = curves;
    this._change = change;
    this._speed = 5;
    this._loop = false;
    this.playing = false;
    this._curves = [];
    this.element = this._made();
  }

  _made() {
    const { _clock: clock } = this;
    const button = (label, drawing, pressed) =>
      h("button", {
        type: "button", "aria-label": label, title: label, class: "round", onclick: pressed,
      }, icon(drawing));
    this._play = button("Play", "play", () => this.toggle());
    this._play.classList.add("main");
    this._slider = h("input", {
      type: "range", class: "slider", min: firstTick(clock), max: lastTick(clock), step: 1,
      "aria-label": "Time", oninput: () => this._go(Number(this._slider.value)),
    });
    this._now = h("output", { class: "now", "aria-live": "off" });
    const speed = select(
      SPEEDS.map((value) => [value, `${value}×`]), this._speed,
      (value) => (this._speed = Number(value)), { title: "Intervals per second" },
    );
    this._rows = h("div", { class: "curves" });
    this._chooser = h("div", { class: "menu" });
    const details = h(
      "details", { class: "chooser" }, h("summary", {}, "Curves"), this._chooser,
    );
    return h(
      "section", { class: "dock", "aria-label": "Clock and curves" },
      h(
        "div", { class: "controls" },
        button("Back to the first interval", "start", () => this._go(sampled(clock, clock.first))),
        button("One interval back", "back", () => this.step(-1)),
        this._play,
        button("One interval forward", "forward", () => this.step(1)),
        button("Next change", "change", () => this.toChange(true)),
        this._now,
        h("span", { class: "grow" }),
        labelled("Speed", speed, { class: "field inline" }),
        checkbox("Loop", this._loop, (on) => (this._loop = on)),
        details,
      ),
      h("div", { class: "axis" }, h("div", { class: "gutter" }), h("div", { class: "track" }, this._slider, this._marks())),
      this._rows,
    );
  }

  _marks() {
    const { _clock: clock } = this;
    const intervals = clock.last - clock.first;
    const step = Math.max(nice(intervals / MARKS), 1);
    const found = [];
    for (let i = Math.ceil(clock.first / step) * step; i <= clock.last; i += step) {
      const at = this._share(sampled(clock, i));
      found.push(h("span", { style: `left:${100 * at}%`, "aria-hidden": "true" }, number(i)));
    }
    return h("div", { class: "marks" }, found);
  }

  _share(tick) {
    const first = firstTick(this._clock), last = lastTick(this._clock);
    return last > first ? (tick - first) / (last - first) : 0;
  }

  /** Show a time. */
  show(tick) {
    this._tick = tick;
    this._slider.value = tick;
    this._slider.setAttribute("aria-valuetext", spoken(this._clock, tick));
    const interval = h("strong", {}, `interval ${number(intervalOf(this._clock, tick))}`);
    fill(this._now, interval, h("span", {}, since(this._clock, tick)));
    document.documentElement.style.setProperty("--at", this._share(tick));
    const place = intervalOf(this._clock, tick) - this._clock.first;
    for (const { values, shown } of this._curves) shown.textContent = number(values[place]);
  }

  _go(tick) {
    this._moved(within(this._clock, tick));
  }

  /** Go so many intervals on, or back. */
  step(intervals) {
    this.pause();
    this._go(stepped(this._clock, this._tick, intervals));
  }

  toStart() {
    this._go(sampled(this._clock, this._clock.first));
  }

  toEnd() {
    this._go(lastTick(this._clock));
  }

  /** Go to the next tick at which something that is shown begins or ends. */
  toChange(forward) {
    this.pause();
    const found = this._change(this._tick, forward);
    if (found !== null) this._go(found);
  }

  toggle() {
    if (this.playing) this.pause();
    else this._start();
  }

  _start() {
    if (this._tick >= lastTick(this._clock)) this.toStart();
    this.playing = true;
    this._label("Pause", "pause");
    let before = null, at = this._tick;
    const frame = (now) => {
      if (!this.playing) return;
      if (Math.round(at) !== this._tick && Math.floor(at) !== this._tick) at = this._tick; // scrubbed
      const seconds = before === null ? 0 : Math.min((now - before) / 1000, 0.25);
      before = now;
      at += seconds * this._speed * this._clock.ticks;
      if (at > lastTick(this._clock)) {
        if (!this._loop) return this._go(lastTick(this._clock)), this.pause();
        at = firstTick(this._clock);
      }
      if (Math.floor(at) !== this._tick) this._go(Math.floor(at));
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this._label("Play", "play");
    this._paused();
  }

  _label(label, drawing) {
    this._play.setAttribute("aria-label", label);
    this._play.title = label;
    fill(this._play, icon(drawing));
  }

  /** Show these curves. */
  async showCurves(names) {
    const columns = this._run.facts.columns.overlay;
    fill(this._chooser, columns.map(({ name, meaning }) => {
      const box = checkbox(title(name), names.includes(name), (on) =>
        this._choose(on ? [...names, name] : names.filter((other) => other !== name)));
      box.title = meaning;
      return box;
    }));
    this._asked = names;
    const found = await Promise.all(names.map((name) => this._run.curve(name)));
    if (this._asked !== names) return; // others were chosen meanwhile
    this._curves = names.map((name, i) => this._curve(columns, name, found[i]));
    fill(this._rows, this._curves.map(({ row }) => row));
    this.show(this._tick);
  }

  _curve(columns, name, values) {
    const about = columns.find((column) => column.name === name);
    const shown = h("strong", {}), found = ends(values);
    const range = found ? `${number(found.low)} to ${number(found.high)}` : "unknown";
    const text = id("curve");
    const drawing = h(
      "div", {
        class: "track", role: "img", "aria-labelledby": text,
        onpointerdown: (event) => this._scrub(event),
        onpointermove: (event) => event.buttons & 1 && this._scrub(event),
      },
      this._placed(curve(values)), h("div", { class: "cursor" }),
    );
    const row = h(
      "div", { class: "row" },
      h("div", { class: "gutter", id: text, title: about?.meaning ?? "" },
        h("span", { class: "name" }, title(name)), shown, h("span", { class: "quiet" }, range)),
      drawing,
    );
    return { row, values, shown };
  }

  /** A curve's first value is at the end of the first interval, which is not the axis' begin. */
  _placed(drawing) {
    const from = this._share(sampled(this._clock, this._clock.first));
    drawing.style.marginLeft = `${100 * from}%`;
    drawing.style.width = `${100 * (1 - from)}%`;
    return drawing;
  }

  _scrub(event) {
    event.preventDefault();
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - left) / width, 0), 1);
    const first = firstTick(this._clock);
    this._go(first + share * (lastTick(this._clock) - first));
  }
}

/** The least of 1, 2, 5, 10, 20, … that is not less. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((of) => of * power).find((of) => of >= value);
}
