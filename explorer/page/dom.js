/** Elements of HTML. Text is always text: a name is never taken for markup. */

import { short } from "./numbers.js";

/**
 * An element with attributes and children. `on…` attributes are listeners, true sets an attribute
 * without a value, null and false leave it out; children that are null are left out too.
 */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  set(element, attributes);
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

/** As `h`, of SVG. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  set(element, attributes);
  element.append(...children);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value != null && value !== false) element.setAttribute(name, value);
  }
}

/** Give an element these children in place of its own. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
}

/**
 * As `fill`, with the children that `made` returns; the control in the place of the one that had the focus
 * has it then. Children may contain elements that are there already: when they are made, these have left.
 */
export function refill(element, made) {
  const controls = () => [...element.querySelectorAll("button, input, select, a, summary")];
  const place = controls().indexOf(document.activeElement);
  fill(element, made());
  const control = controls()[place];
  // A radio button has not yet got the focus when it is chosen.
  const chosen = control?.type === "radio" && element.querySelector(`[name="${control.name}"]:checked`);
  (chosen || control)?.focus();
}

let numbered = 0;

/** An id that no other element has. */
export const id = (what) => `${what}-${++numbered}`;

/** A control with its label before it. */
export function labelled(text, control, attributes = {}) {
  control.id ||= id("control");
  return h("div", { class: "field", ...attributes }, h("label", { for: control.id }, text), control);
}

/** A drop-down list of [value, text] pairs. */
export function select(choices, value, changed, attributes = {}) {
  const made = h("select", { ...attributes, onchange: () => changed(made.value) });
  made.append(...choices.map(([key, text]) => h("option", { value: key }, text)));
  made.value = value;
  return made;
}

/** A field for a whole number that is not negative; null = it is empty. */
export const wholeNumber = (changed, attributes = {}) => h("input", { type: "number", min: 0, step: 1,
  onchange: ({ target: { value } }) => changed(value === "" ? null : Math.max(Math.round(Number(value)), 0)), ...attributes });

/** A round button with a sign or a drawing, and the name of what it does. */
export const roundButton = (label, sign, pressed) =>
  h("button", { type: "button", class: "round", "aria-label": label, title: label, onclick: pressed }, sign);

/** A choice that a button takes back: `word`, and its `value`, which is cut where it is long. */
export const tag = (word, value, label, remove, href = null) => h("span", { class: "filter" }, word && `${word} `,
  h("strong", { title: value }, href ? h("a", { href }, short(value, 40)) : short(value, 40)),
  h("button", { type: "button", "aria-label": label, title: label, onclick: remove }, "×"));

/** One of several, as radio buttons side by side. */
export function choice(legend, choices, value, changed) {
  const name = id("choice");
  const buttons = choices.map(([key, text]) => {
    const input = h("input", {
      type: "radio", name, value: key, id: id("radio"), onchange: () => changed(key),
    });
    input.checked = key === value;
    return [input, h("label", { for: input.id }, text)];
  });
  return h(
    "fieldset", { class: "choice" },
    h("legend", {}, legend), h("div", { class: "segments" }, buttons),
  );
}

/** A checkbox with its label. */
export function checkbox(text, checked, changed) {
  const input = h("input", { type: "checkbox", onchange: () => changed(input.checked) });
  input.checked = checked;
  return h("label", { class: "check" }, input, h("span", {}, text));
}

const ICONS = {
  start: ["M3 2v10", "M12 2 6 7l6 5z"],
  back: ["M10 2 4 7l6 5z"],
  play: ["M4 2l7 5-7 5z"],
  pause: ["M4.2 2.5v9", "M9.8 2.5v9"],
  forward: ["M4 2l6 5-6 5z"],
  change: ["M2 7h7M6 3.5 9.5 7 6 10.5", "M12 2v10"],
  fit: ["M2 5V2h3M9 2h3v3M12 9v3H9M5 12H2V9"],
  lasso: ["M3.6 9.4C1.4 8.2 1.2 4.9 3.8 3.2 6.4 1.5 11 2 12.4 4.4 13.8 6.9 11 9.3 7.6 9.6 6 9.7 4.6 9.8 3.6 9.4ZC2.5 10.4 3.4 12.6 5.4 12.6"],
  save: ["M7 1.5v7M3.8 5.5 7 8.7l3.2-3.2M2 12.3h10"],
};
const OPEN = ["change", "fit", "save", "lasso"];

/** A drawing for a button, whose name is said elsewhere. */
export function icon(name) {
  const parts = ICONS[name].map((d) => svg("path", { d, class: OPEN.includes(name) ? "open" : "" }));
  return svg("svg", { viewBox: "0 0 14 14", class: "icon", "aria-hidden": "true" }, ...parts);
}
