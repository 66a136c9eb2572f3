/** What the stages of the screens have in common: tools of a picture, and labels over it. */

import { h, icon, roundButton } from "./dom.js";
import { savePng } from "./png.js";

/** Buttons that zoom and fit a picture, another one, and one that saves it as `savePng` takes what `figure()` gives. */
export function tools(picture, figure = null, more = null) {
  return h("div", { class: "tools" },
    roundButton("Zoom in", "+", () => picture()?.zoom(0.5)),
    roundButton("Zoom out", "−", () => picture()?.zoom(-0.5)),
    roundButton("Fit the picture", icon("fit"), () => picture()?.fit()),
    more,
    figure && h("details", { class: "chooser save" },
      h("summary", { "aria-label": "Save the picture", title: "Save the picture" }, icon("save")),
      h("div", { class: "menu" }, SCALES.map(([scale, text]) =>
        h("button", { type: "button", class: "small", onclick: (event) => save(event.target, figure(), scale) }, text)))));
}

const SCALES = [[1, "PNG"], [2, "PNG, 2×"]];

async function save(button, figure, scale) {
  button.disabled = true;
  try {
    await savePng(figure, scale);
  } catch (error) {
    figure.failed(error);
  }
  button.disabled = false;
}

const NARROW = matchMedia("(max-width: 760px)"); // as in style.css

/** True where the table is shown in the picture's place. An element's own size would say it as well, but costs
 * a layout of the page at each step of the clock. */
export const showsTable = (view, lacksPicture) => view === "table" || lacksPicture || NARROW.matches;

/** Show the picture or the table in a stage; `button` names the other one, and is hidden where no picture can be. */
export function showView(stage, button, view, lacksPicture) {
  const isTable = view === "table" || lacksPicture;
  stage.classList.toggle("as-table", isTable);
  button.textContent = isTable ? "Picture" : "Table";
  button.hidden = lacksPicture;
}

/** Put a label beside a pixel of the stage that it is in. */
export function beside(label, x, y) {
  const left = x + 20 + label.offsetWidth > label.closest(".stage").clientWidth;
  const from = left ? x - 20 - label.offsetWidth : x + 20;
  label.style.transform = `translate(${Math.round(from)}px, ${Math.round(Math.max(y - 30, 4))}px)`;
}
