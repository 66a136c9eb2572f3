/** What an exported file holds, and what it does not. */

import { h } from "./dom.js";

/** Words for rows that are not all that the run has; empty where they are. */
export const partOf = ({ exported }) => (exported && [exported.window, exported.topic, exported.layers].some((of) => of !== null)
  ? " This file holds a part of the run." : "");

/** Folded away; nothing where a server answers. */
export function aboutFile(facts) {
  if (!facts?.exported) return null;
  const { run, exported: { window, topic, layers } } = facts;
  const part = [
    window ? `intervals ${window[0]} to ${window[1]}` : "all intervals",
    topic !== null && `the topic ${facts.topics[topic]}`,
    layers && `links of the layer${layers.length > 1 ? "s" : ""} ${layers.join(", ")}`,
  ].filter(Boolean);
  const lines = [
    "Compare and other runs are left out: vizpub explore shows them. Large tables are left out, too; Tables says so.",
    facts.knows.publications && `Coverage is of all messages in this file${topic === null ? " or of one topic" : ""}, `
      + "not of a publisher or a part of a name.",
    topic !== null && "Only the topic's subscribers, with its relays if you choose them, and the links between them are "
      + "shown, and only these peers have values. Values, curves and scales are those of the whole overlay.",
    part.length > 1 && "Commands give the rows and values of the whole run.",
    window && "Scales for the whole run reach beyond these intervals.",
  ].filter(Boolean);
  return h("details", { class: "chooser file" }, h("summary", {}, "About this file"),
    h("div", { class: "menu" },
      h("p", {}, "From the run ", h("strong", {}, run), `: ${part.join("; ")}.`),
      lines.map((line) => h("p", { class: "quiet" }, line))));
}
