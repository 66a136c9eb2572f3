/** Buttons that zoom the axis of time. */

import { h } from "./dom.js";
import { firstTick, lastTick } from "./time.js";

const LEAST = 4; // ticks, or intervals if these are longer

/** `state()` has `t`, and `from` and `until` of the axis (null = all); `change` gets others of these. */
export function axisTools(clock, state, change) {
  const zoom = (factor) => () => {
    const { t, from, until } = state();
    const [first, last] = [from ?? firstTick(clock), until ?? lastTick(clock)];
    const length = Math.max(Math.round((last - first) * factor), LEAST);
    // What is shown stays where it is on the axis.
    const begin = Math.max(Math.round(t - length * (t - first) / Math.max(last - first, 1)), firstTick(clock));
    change({ from: begin, until: begin + length });
  };
  const button = (label, text, pressed) => h("button", {
    type: "button", class: "round", "aria-label": label, title: label, onclick: pressed }, text);
  return [
    button("Show less of the time", "+", zoom(0.5)),
    button("Show more of the time", "−", zoom(2)),
    button("Show all of the time", "⤢", () => change({ from: null, until: null })),
  ];
}
