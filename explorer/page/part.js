/** Controls of the part of an overlay that is shown, and the window of time. */

import { checkbox, fill, h, labelled, select, tag, wholeNumber } from "./dom.js";
import { number } from "./numbers.js";
import { duration } from "./time.js";

const MOST_CHIPS = 12;
const MULTIPLES = [1, 2, 5, 10, 20, 50, 100]; // of an interval

/** A range of degrees, and the component of the selected peer; the controls keep the focus. */
export class PartControls {
  constructor(change) {
    const end = (name, label) =>
      wholeNumber((degree) => change({ [name]: degree }), { placeholder: "any", "aria-label": label });
    this._ends = { least: end("least", "Least degree"), most: end("most", "Largest degree") };
    const component = checkbox("Only the component of the selected peer", false,
      (on) => change({ component: on ? 1 : 0 }));
    this._component = component.querySelector("input");
    this.elements = [
      h("fieldset", { class: "range" }, h("legend", {}, "Neighbours (degree)"),
        h("div", {}, this._ends.least, h("span", { "aria-hidden": "true" }, "to"), this._ends.most)),
      component,
    ];
  }

  /** `hasPeer` = one is selected. */
  show({ component, ...state }, hasPeer) {
    for (const [name, input] of Object.entries(this._ends)) input.value = state[name] ?? "";
    this._component.checked = component === 1;
    this._component.disabled = !hasPeer;
  }
}

/** Peers in a list that each can leave, and all together. */
export function chips(word, peers, names, leave) {
  const chip = (peer) => tag("", names[peer], `${word}: remove ${names[peer]}`, () => leave([peer]));
  const more = peers.length - MOST_CHIPS;
  return peers.length ? h("div", { class: "chips" }, h("h3", {}, word), peers.slice(0, MOST_CHIPS).map(chip),
    more > 0 ? h("span", { class: "quiet" }, `and ${number(more)} more`) : null,
    peers.length > 1 ? h("button", { type: "button", class: "small", "aria-label": `${word}: remove all`,
      onclick: () => leave(peers) }, "Remove all") : null) : null;
}

/** A control of the window, in ticks of a clock, and one that is chosen. */
export class WindowControl {
  constructor(change) {
    this._change = change;
    this.element = h("div", {});
  }

  show(clock, chosen) {
    const parts = clock.ticks > 1 ? [0.1, 0.5] : [];
    const multiples = [...parts, ...MULTIPLES].filter((count) => count <= clock.last - clock.first + 1);
    const lengths = [...new Set([0, ...multiples.map((count) => Math.round(count * clock.ticks)), chosen])];
    const choices = lengths.sort((a, b) => a - b).map((ticks) => [ticks, ticks ? windowText(clock, ticks) : "none"]);
    if (String(choices) !== this._choices) { // or the control would lose the focus
      this._choices = String(choices);
      this._select = select(choices, chosen, (ticks) => this._change(Number(ticks)),
        { title: "Show what existed at any time in the window" });
      fill(this.element, labelled("Window", this._select, { class: "field inline" }));
    }
    this._select.value = chosen;
  }
}

/** The length of a window. */
export const windowText = (clock, ticks) => (clock.tick_us == null
  ? `${number(ticks / clock.ticks)} interval${ticks === clock.ticks ? "" : "s"}` : duration(ticks * clock.tick_us));
