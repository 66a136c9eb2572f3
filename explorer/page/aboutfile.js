/** What an exported file holds, and what it does not. */

import { h } from "./dom.js";

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
    "Tables, Compare and other runs are left out: vizpub explore shows them.",
    facts.knows.publications && `Coverage is of all messages in this file${topic === null ? " or of one topic" : ""}, `
      + "not of a publisher or a part of a name.",
    topic !== null && "Only the topic's subscribers and the links between them are shown, and only peers that "
      + "subscribe at some time have values. Values, curves and scales are those of the whole overlay.",
    window && "Scales for the whole run reach beyond these intervals.",
  ].filter(Boolean);
  return h("details", { class: "chooser file" }, h("summary", {}, "About this file"),
    h("div", { class: "menu" },
      h("p", {}, "From the run ", h("strong", {}, run), `: ${part.join("; ")}.`),
      lines.map((line) => h("p", { class: "quiet" }, line))));
}
