/** Buttons that zoom the axis of time. */

import { roundButton } from "./dom.js";

const LEAST = 4; // places of the clock

/** Buttons for the axis of a clock; `state()` has `from` and `until` of the axis (null = all), `change` gets others. */
export function axisTools(clock, state, change) {
  const zoom = (factor) => () => {
    const { from, until } = state(), { at, scale } = clock;
    const [first, last] = [from ?? scale.first, until ?? scale.last];
    const length = Math.max(Math.round((last - first) * factor), LEAST);
    // What is shown stays where it is on the axis.
    const begin = Math.max(Math.round(at - length * (at - first) / Math.max(last - first, 1)), scale.first);
    change({ from: begin, until: begin + length });
  };
  return [
    roundButton("Show less of the time", "+", zoom(0.5)),
    roundButton("Show more of the time", "−", zoom(2)),
    roundButton("Show all of the time", "⤢", () => change({ from: null, until: null })),
  ];
}
