/** The menu that leads to the page of a peer or a topic by its name. */

import { page } from "./address.js";
import { fill, h } from "./dom.js";
import { search } from "./search.js";

/** Folded away; the names of a run that is collected are those of when it is opened. */
export function finder({ facts: { run, peers, topics } }) {
  const menu = h("div", { class: "menu find" });
  const go = (kind, place) => {
    details.open = false;
    location.hash = page(run, kind, place);
  };
  const details = h("details", { class: "chooser", ontoggle: () => {
    if (!details.open) return;
    fill(menu, search(peers, "Page of a peer", (peer) => go("peer", peer), "Page of a peer …"),
      topics.length ? search(topics, "Page of a topic", (topic) => go("topic", topic), "Page of a topic …", "topic") : null);
    menu.querySelector("input").focus();
  } }, h("summary", {}, "Find"), menu);
  return details;
}
