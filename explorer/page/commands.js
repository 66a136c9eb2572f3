/** Commands and Cypher that give what the page shows, to be copied. */

import { h } from "./dom.js";

/** Folded away: [word, text] pairs. */
export const commands = (told) =>
  h("details", {}, h("summary", {}, "The same by command and Cypher"),
    told.map(([word, text]) => [h("h4", {}, word), h("div", { class: "command" },
      h("pre", { tabindex: "0", "aria-label": word }, text),
      h("button", { type: "button", class: "small", onclick: (event) => copy(event.target, text) },
        "Copy"))]));

/** Put a text on the clipboard, and say so on the button. */
export async function copy(button, text) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "This browser does not copy";
  }
  setTimeout(() => (button.textContent = label), 1500);
}
