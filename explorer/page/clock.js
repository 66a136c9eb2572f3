/**
 * The clock: play, step, scrub, speed, loop. It knows nothing of what it shows: a *scale* says where
 * it begins and ends, how it steps, and how its places are said.
 *
 *     first, last       whole numbers
 *     begin             where "Back to the first" leads
 *     unit, speeds      places per second at speed 1, and [speed, text] to choose from
 *     speed, pace       the speed at first, and what it is called
 *     label             of the slider
 *     within(at)        the nearest place that there is
 *     stepped(at, n)    n steps on, or back
 *     said(at)          what is shown: the main thing, and the rest
 *     spoken(at)        both in one text
 *     marks(from, to)   [place, text] under the slider, from one place to another
 *     words             names of the buttons: begin, back, forward, change
 */

import { checkbox, fill, h, icon, labelled, roundButton, select } from "./dom.js";

export class Clock {
  /**
   * `moved(at)` is called for each new place, `chosen({ speed })` or `chosen({ loop })` for another pace;
   * `change(at, forward)` says where the next change is.
   */
  constructor(scale, { moved, paused, change, chosen }) {
    this.scale = scale;
    this.view = null; // the part of the axis that is shown, as [from, to]; null = all of it
    this._moved = moved;
    this._paused = paused;
    this._change = change;
    this._chosen = chosen;
    this._pace = { speed: null, loop: 0 };
    this.playing = false;
    this.rows = h("div", { class: "curves" });
    this.strip = h("div", { class: "strip" });
    this.gutter = h("div", { class: "gutter" });
    this._axis = h("div", { class: "axis" });
    this._controls = h("div", { class: "controls" });
    this.element = h("section", { class: "dock", "aria-label": "Clock and curves" },
      this._controls, this._axis, this.strip, this.rows);
    this._more = [];
    this._build();
  }

  /** Follow another scale. */
  setScale(scale) {
    this.pause();
    this.scale = scale;
    this.view = null;
    this._build();
  }

  /** Follow the same scale, which is longer by now. */
  extend(scale) {
    this.scale = scale;
    this.setView(this.view);
  }

  /** Show a part of the axis alone, [from, to], or all of it. */
  setView(view) {
    this.view = view;
    [this._slider.min, this._slider.max] = this._ends;
    this._showMarks();
    if (this.at !== undefined) this.show(this.at);
  }

  get _ends() {
    return this.view ?? [this.scale.first, this.scale.last];
  }

  /** A control beside those of the clock. */
  add(control) {
    this._more.push(control);
    this._controls.append(control);
  }

  _build() {
    const { scale } = this;
    const { words } = scale;
    const button = (label, drawing, pressed) => roundButton(label, icon(drawing), pressed);
    this._play = button("Play", "play", () => this.toggle());
    this._play.classList.add("main");
    this._slider = h("input", {
      type: "range", class: "slider", min: scale.first, max: scale.last, step: 1,
      "aria-label": scale.label, oninput: () => this._go(Number(this._slider.value)),
    });
    this._now = h("output", { class: "now", "aria-live": "off" });
    this._speeds = select(scale.speeds, this._speed, (value) =>
      this._chosen({ speed: Number(value) === scale.speed ? null : Number(value) }), { title: scale.about });
    this._loop = checkbox("Loop", this._pace.loop === 1, (on) => this._chosen({ loop: on ? 1 : 0 }));
    fill(this._controls,
      button(words.begin, "start", () => this._go(scale.begin)),
      button(words.back, "back", () => this.step(-1)),
      this._play,
      button(words.forward, "forward", () => this.step(1)),
      button(words.change, "change", () => this.toChange(true)),
      this._now,
      h("span", { class: "grow" }),
      labelled(scale.pace, this._speeds, { class: "field inline" }), this._loop,
      this._more);
    this._marks = h("div", { class: "marks" });
    fill(this._axis, this.gutter, h("div", { class: "track" }, this._slider, this._marks));
    this._showMarks();
  }

  /** Play at a speed (null = that of the scale), and begin again at the end or not. */
  setPace({ speed, loop }) {
    this._pace = { speed, loop };
    this._speeds.value = this._speed;
    this._loop.querySelector("input").checked = loop === 1;
  }

  get _speed() {
    const { speeds, speed } = this.scale;
    return speeds.some(([value]) => value === this._pace.speed) ? this._pace.speed : speed;
  }

  _showMarks() {
    const isVisible = ([at]) => this.share(at) >= 0 && this.share(at) <= 1;
    fill(this._marks, this.scale.marks(...this._ends).filter(isVisible).map(([at, text]) =>
      h("span", { style: `left:${100 * this.share(at)}%`, "aria-hidden": "true" }, text)));
  }

  /** Where a place is on the axis, 0 to 1 in the part that is shown. */
  share(at) {
    const [first, last] = this._ends;
    return last > first ? (at - first) / (last - first) : 0;
  }

  /** Show a place. */
  show(at) {
    this.at = at;
    this._slider.value = at;
    this._slider.setAttribute("aria-valuetext", this.scale.spoken(at));
    const [main, rest] = this.scale.said(at);
    fill(this._now, h("strong", {}, main), h("span", {}, rest));
    document.documentElement.style.setProperty("--at", this.share(at));
  }

  _go(at) {
    this._moved(this.scale.within(at));
  }

  /** Go so many steps on, or back. */
  step(count) {
    this.pause();
    this._go(this.scale.stepped(this.at, count));
  }

  toStart() {
    this._go(this.scale.begin);
  }

  toEnd() {
    this._go(this.scale.last);
  }

  /** Go to the next place at which something that is shown begins or ends. */
  toChange(forward) {
    this.pause();
    const found = this._change(this.at, forward);
    if (found !== null) this._go(found);
  }

  toggle() {
    if (this.playing) this.pause();
    else this._start();
  }

  _start() {
    const { first, last, unit } = this.scale;
    if (this.at >= last) this.toStart();
    this.playing = true;
    this._label("Pause", "pause");
    let before = null, at = this.at;
    const frame = (now) => {
      if (!this.playing) return;
      if (Math.round(at) !== this.at && Math.floor(at) !== this.at) at = this.at; // scrubbed
      const seconds = before === null ? 0 : Math.min((now - before) / 1000, 0.25);
      before = now;
      at += seconds * this._speed * unit;
      if (at > last) {
        if (!this._pace.loop) return this._go(last), this.pause();
        at = first;
      }
      if (Math.floor(at) !== this.at) this._go(Math.floor(at));
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

  /** A drawing under the axis, with the cursor; a click into it leads there. */
  track(drawing, attributes = {}) {
    return h("div", {
      class: "track", role: "img", ...attributes,
      onpointerdown: (event) => this._scrub(event),
      onpointermove: (event) => event.buttons & 1 && this._scrub(event),
    }, drawing, h("div", { class: "cursor" }));
  }

  _scrub(event) {
    event.preventDefault();
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - left) / width, 0), 1);
    const [first, last] = this._ends;
    this._go(first + share * (last - first));
  }
}
