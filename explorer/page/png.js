/** Pictures to keep: a PNG of what a screen draws, with its legend, labels and a caption. */

import { h } from "./dom.js";
import { saveFile } from "./saving.js";

const ROOM = 16; // pixels around all
const CAPTION = 12; // pixels of its letters

/**
 * Download what `stages` show, with `scale` pixels for one of the page. Each has its `element`, whose labels
 * are drawn too, and its `picture`. `caption` is a list of lines; the name of the file is that of the first.
 */
export async function savePng({ stages, legend, caption }, scale) {
  const canvas = await draw(stages, legend, caption, scale);
  const content = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!content) throw new Error("The browser has not enough memory for this picture.");
  saveFile(content, `${caption[0]}.png`);
}

async function draw(stages, legend, caption, scale) {
  const boxes = stages.map(({ element }) => element.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left)), top = Math.min(...boxes.map((box) => box.top));
  const right = Math.max(...boxes.map((box) => box.right)), bottom = Math.max(...boxes.map((box) => box.bottom));
  const beside = legend.getBoundingClientRect();
  const width = right - left + (beside.width ? beside.width + 2 * ROOM : 0);
  const canvas = h("canvas"), context = canvas.getContext("2d");
  const lines = wrapped(context, caption, width - 2 * ROOM);
  const height = Math.max(bottom - top, beside.height + 2 * ROOM);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round((height + lines.length * 1.5 * CAPTION + ROOM) * scale);
  context.scale(scale, scale);
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const [i, { element, picture }] of stages.entries()) {
    const image = await picture.image(scale);
    context.globalAlpha = Number(getComputedStyle(element.querySelector(".canvas")).opacity);
    context.drawImage(image, boxes[i].left - left, boxes[i].top - top, boxes[i].width, boxes[i].height);
    context.globalAlpha = 1;
    for (const label of element.querySelectorAll(".pinned, .about")) paint(context, label, left, top);
  }
  paint(context, legend, beside.left - (right - left) - ROOM, beside.top - ROOM);
  write(context, lines, height + CAPTION);
  return canvas;
}

const font = (isHeading) => `${isHeading ? "600 " : ""}${CAPTION}px system-ui, sans-serif`;

/** [line, whether it is of the heading]: lines of at most this width. */
function wrapped(context, caption, width) {
  return caption.flatMap((text, place) => {
    context.font = font(place === 0);
    const lines = [""];
    for (const word of text.split(/(?<=[\s&,])/)) {
      for (const part of context.measureText(word).width > width ? word : [word]) {
        const longer = lines.at(-1) + part;
        if (context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
        else lines.push(part);
      }
    }
    return lines.map((line) => [line.trim(), place === 0]);
  });
}

function write(context, lines, top) {
  const { color } = getComputedStyle(document.body);
  context.fillStyle = color;
  context.textBaseline = "middle";
  lines.forEach(([line, isHeading], i) => {
    context.font = font(isHeading);
    context.fillText(line, ROOM, top + (i + 0.5) * 1.5 * CAPTION);
  });
}

/** Draw an element of the page as it is shown, with this corner of the page at the canvas's: backgrounds,
 * drawings and text, which is all that legends and labels have. */
function paint(context, element, left, top) {
  if (!element.offsetParent && element.getClientRects().length === 0) return;
  const box = element.getBoundingClientRect(), style = getComputedStyle(element);
  const x = box.left - left, y = box.top - top;
  context.fillStyle = background(context, style, x, box.width);
  context.beginPath();
  context.roundRect(x, y, box.width, box.height, Math.min(parseFloat(style.borderRadius) || 0, box.height / 2));
  context.fill();
  if (element.localName === "path") return outline(context, element, style, x, y);
  for (const node of element.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) text(context, node, style, left, top);
    else paint(context, node, left, top);
  }
}

function background(context, { backgroundImage, backgroundColor }, x, width) {
  const colours = backgroundImage.match(/rgba?\([^)]*\)/g);
  if (!colours) return backgroundColor;
  const ramp = context.createLinearGradient(x, 0, x + width, 0);
  colours.forEach((colour, i) => ramp.addColorStop(i / (colours.length - 1), colour));
  return ramp;
}

function outline(context, element, { fill, stroke, strokeWidth }, x, y) {
  const whole = element.ownerSVGElement, box = whole.getBoundingClientRect(), own = element.getBoundingClientRect();
  context.save();
  context.translate(x - (own.left - box.left), y - (own.top - box.top));
  context.scale(box.width / whole.viewBox.baseVal.width, box.height / whole.viewBox.baseVal.height);
  const path = new Path2D(element.getAttribute("d"));
  context.fillStyle = fill;
  context.fill(path);
  context.strokeStyle = stroke;
  context.lineWidth = parseFloat(strokeWidth);
  if (stroke !== "none") context.stroke(path);
  context.restore();
}

function text(context, node, style, left, top) {
  const range = document.createRange();
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textBaseline = "middle";
  // A line of its own for each box: text that wraps has several.
  for (const [line, box] of linesOf(node, range)) {
    const { right } = node.parentElement.getBoundingClientRect();
    context.fillText(line, box.left - left, (box.top + box.bottom) / 2 - top, Math.max(right - box.left, 1));
  }
}

/** The lines of a text as the page breaks it, with their boxes. */
function linesOf(node, range) {
  const lines = [];
  for (let i = 0; i < node.data.length; i++) {
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    const box = range.getBoundingClientRect();
    if (lines.length && Math.abs(lines.at(-1)[1].top - box.top) < 2) lines.at(-1)[0] += node.data[i];
    else if (box.width) lines.push([node.data[i], box]);
  }
  return lines;
}
