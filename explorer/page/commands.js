/** Commands and Cypher that give what the page shows, to be copied. */

import { h } from "./dom.js";

/** Folded away: [word, text] pairs. */
export const commands = (told) =>
  h("details", {}, h("summary", {}, "The same by command and Cypher"),
    told.map(([word, text]) => [h("h4", {}, word), h("div", { class: "command" },
      h("pre", { tabindex: "0", "aria-label": word }, text),
      h("button", { type: "button", class: "small", onclick: (event) => copied(event.target, text) },
        "Copy"))]));

async function copied(button, text) {
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}
