/** How peers look: the controls of layout, colour and size, and what these mean. */

import { gradient, theme, themeName } from "./colours.js";
import { choice, fill, h, labelled, select } from "./dom.js";
import { amount, number, title } from "./numbers.js";

/** Controls for `columns` of peers; `change(changes)` is called with those of the state. */
export function lookControls(columns, { colour, size, scale, layout }, change) {
  const metrics = [["", "the same for all"], ...columns.map(({ name, unit }) =>
    [name, unit ? `${title(name)} (${unit})` : title(name)])];
  return [
    labelled("Layout", select(
      [["force", "by links (force)"], ["circle", "circle"]], layout, (value) => change({ layout: value }))),
    labelled("Colour", select(metrics, colour, (value) => change({ colour: value }))),
    labelled("Size", select(metrics, size, (value) => change({ size: value }))),
    choice("Scale", [["run", "whole run"], ["interval", "each interval"]], scale,
      (value) => change({ scale: value })),
  ];
}

/** What colour and size mean, drawn anew only where it changes. `columns` say what metrics mean. */
export class Legend {
  constructor(columns) {
    this._columns = columns;
    this.element = h("div", { class: "legend" });
  }

  /** Each is null, or a name and the ends of its scale. */
  show(colour, size) {
    const key = JSON.stringify([themeName(), colour, size], ["name", "low", "high"]);
    if (key === this._key) return;
    this._key = key;
    fill(this.element, legend(this._columns, colour, size));
  }
}

function legend(columns, colour, size) {
  const { ramp, unknown } = theme();
  const scale = ({ name, low, high }, drawing) => {
    const isKnown = low !== null && !Number.isNaN(low);
    const meaning = columns.find((column) => column.name === name)?.meaning ?? "";
    return h("figure", { "data-of": name, title: meaning },
      h("figcaption", {}, title(name)), drawing,
      isKnown ? h("div", { class: "ends" },
        h("span", { "data-low": low }, number(low)), h("span", { "data-high": high }, number(high)))
        : h("div", { class: "quiet" }, "unknown"));
  };
  return [
    colour && scale(colour, h("div", { class: "ramp", style: `background:${gradient(ramp)}` })),
    size && scale(size, h("div", { class: "sizes" }, [6, 9, 12, 15, 18].map((px) =>
      h("i", { style: `width:${px}px;height:${px}px` })))),
    colour && h("div", { class: "key" },
      h("i", { style: `background:rgb(${unknown.join(" ")})` }), "unknown"),
  ];
}

/** What a picture of an overlay shows, in a sentence or two for a caption. */
export function meaningOf(facts, { topics, how, layers, colour, size, scale, layout }) {
  const names = (list) => list.join(", ");
  const metrics = [colour && `Colour: ${title(colour)}.`, size && `Size: ${title(size)}.`,
    (colour || size) && `Scale: ${scale === "run" ? "whole run" : "this interval"}.`];
  return [
    topics.length && `${topics.length > 1 && how === "all" ? "All of the topics" : "Topics"}: `
      + `${names(topics.map((topic) => facts.topics[topic]))}.`,
    `Layers: ${names(layers ?? facts.counted) || "all"}.`, ...metrics,
    `Layout: ${layout === "force" ? "by links" : "circle"}.`,
  ].filter(Boolean).join(" ");
}

/** The numbers of peers and links that are shown; null links are unknown. */
export const countsOf = ({ peers, pairs }) =>
  `${amount(peers, "peer")} and ${pairs === null ? "unknown links" : amount(pairs, "link")}`;

/** A run and its protocol, or source. */
export const nameOf = ({ run, protocol, source }) => `${run} (${protocol ?? source})`;
