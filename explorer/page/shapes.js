/** Shapes of peers by their role, the same in the picture and in its legend. */

import { svg } from "./dom.js";

const SIZE = 64; // pixels of a shape in the atlas

/** Outlines in a square of 20 × 20; a ring has not got the message yet. */
const PATHS = {
  publisher: "M10 .5 19.5 10 10 19.5 .5 10Z",
  subscriber: "M10 1a9 9 0 1 0 .01 0Z",
  relay: "M2 2h16v16H2Z",
  peer: "M10 1 19 18H1Z",
  missed: "M3.6.8 10 7.2 16.4.8 19.2 3.6 12.8 10 19.2 16.4 16.4 19.2 10 12.8 3.6 19.2.8 16.4 7.2 10 .8 3.6Z",
  arrow: "M2 3 20 10 2 17Z",
  ring: "M10 1a9 9 0 1 0 .01 0ZM10 4.5a5.5 5.5 0 1 1-.01 0Z",
};
const NAMES = Object.keys(PATHS);

let atlas = null;

/** Properties of an IconLayer that draws them, in the colour that it is given. */
export function shapes() {
  atlas ??= drawn();
  return { iconAtlas: atlas, iconMapping: Object.fromEntries(NAMES.map((name, i) =>
    [name, { x: i * SIZE, y: 0, width: SIZE, height: SIZE, mask: true,
      ...(name === "arrow" ? { anchorX: SIZE } : {}) }])) }; // an arrow is placed by its tip
}

function drawn() {
  const canvas = document.createElement("canvas");
  canvas.width = SIZE * NAMES.length;
  canvas.height = SIZE;
  const context = canvas.getContext("2d");
  NAMES.forEach((name, i) => {
    const unit = (SIZE - 4) / 20;
    context.setTransform(unit, 0, 0, unit, i * SIZE + 2, 2);
    context.fill(new Path2D(PATHS[name]));
  });
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

/** A shape for a legend. */
export const legendShape = (name, colour) => svg("svg", {
  viewBox: "0 0 20 20", class: "shape", "aria-hidden": "true", style: `color:rgb(${colour.join(" ")})`,
}, svg("path", { d: PATHS[name] }));
