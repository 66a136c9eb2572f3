/** Curves through time, drawn as SVG; all of one width, on the axis of the clock. */

import { h, svg } from "./dom.js";
import { number } from "./numbers.js";

const HEIGHT = 100;
const MOST = 1200; // more intervals than these are drawn as the least and the largest of each part

/** The ends of the values that are known; null where none is. */
export function ends(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? { low, high } : null;
}

/** A curve of values at equal distances; a gap is unknown. `within` are the ends of its scale. */
export function curve(values, attributes = {}, within = null) {
  const found = within ?? ends(values);
  const width = Math.max(values.length - 1, 1);
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`, preserveAspectRatio: "none", class: "curve",
    "aria-hidden": "true", focusable: "false", ...attributes,
  });
  if (!found) return drawing;
  const { low, high } = found;
  const y = (value) => (high > low ? 94 - ((value - low) / (high - low)) * 88 : 50);
  drawing.append(svg("path", { d: line(values, y), class: "line" }));
  return drawing;
}

/** A curve with a cursor, and the ends of its values. */
export function withRange(values) {
  const found = ends(values);
  return [
    h("div", { class: "track" }, curve(values), h("div", { class: "cursor" })),
    h("p", { class: "quiet" }, found ? `${number(found.low)} to ${number(found.high)}` : "unknown"),
  ];
}

function line(values, y) {
  const parts = [];
  let pen = "M";
  for (const [x, value] of points(values)) {
    if (Number.isNaN(value)) {
      pen = "M";
      continue;
    }
    parts.push(`${pen}${x} ${y(value).toFixed(2)}`);
    // A value between two unknown ones is a dot, which a line of no length draws.
    if (pen === "M") parts.push("h0");
    pen = "L";
  }
  return parts.join("");
}

/** Places and values to draw; of many, the least and the largest of each part. */
function* points(values) {
  if (values.length <= MOST) {
    for (let x = 0; x < values.length; x++) yield [x, values[x]];
    return;
  }
  const length = values.length / (MOST / 2);
  for (let from = 0; from < values.length; from += length) {
    let low = -1, high = -1;
    for (let x = Math.floor(from); x < Math.min(from + length, values.length); x++) {
      if (Number.isNaN(values[x])) continue;
      if (low < 0 || values[x] < values[low]) low = x;
      if (high < 0 || values[x] > values[high]) high = x;
    }
    if (low < 0) yield [Math.floor(from), NaN];
    else for (const x of [Math.min(low, high), Math.max(low, high)]) yield [x, values[x]];
  }
}
