/** What the stages of the screens have in common: tools of a picture, and labels over it. */

import { h, icon } from "./dom.js";

/** Buttons that zoom and fit a picture. */
export function tools(picture) {
  const tool = (label, text, pressed) =>
    h("button", { type: "button", class: "round", "aria-label": label, title: label, onclick: pressed }, text);
  return h("div", { class: "tools" },
    tool("Zoom in", "+", () => picture()?.zoom(0.5)),
    tool("Zoom out", "−", () => picture()?.zoom(-0.5)),
    tool("Fit the picture", icon("fit"), () => picture()?.fit()));
}

/** Put a label beside a pixel of the stage that it is in. */
export function beside(label, x, y) {
  const left = x + 20 + label.offsetWidth > label.closest(".stage").clientWidth;
  const from = left ? x - 20 - label.offsetWidth : x + 20;
  label.style.transform = `translate(${Math.round(from)}px, ${Math.round(Math.max(y - 30, 4))}px)`;
}
