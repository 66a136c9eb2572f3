/** How peers look: the controls of layout, colour and size, and what these mean. */

import { coloured, gradient, share, theme, themeName } from "./colours.js";
import { choice, fill, h, labelled, select } from "./dom.js";
import { groupRows } from "./groups.js";
import { amount, number, short, title } from "./numbers.js";
import { windowText } from "./part.js";
import { HOPS } from "./shown.js";

const FROM_SELECTED = "hops from the selected peer";
const MOST_HOPS = 12; // more are a scale without numbers of peers

/** Controls for `columns` of peers, and for `groups` of them; `change(changes)` is called with those of
 * the state. */
export function lookControls(columns, groups, { colour, size, scale, layout }, change) {
  const same = ["", "the same for all"];
  const [metrics, ofGroups] = [columns, groups].map((of) => of.map(({ name, unit }) => {
    const kind = name.startsWith("attribute:") ? "attribute" : unit;
    return [name, kind ? `${title(name)} (${kind})` : title(name)];
  }));
  const colours = [same, [HOPS, FROM_SELECTED], ...ofGroups, ...metrics];
  return [
    labelled("Layout", select(
      [["force", "by links (force)"], ["circle", "circle"]], layout, (value) => change({ layout: value }))),
    labelled("Colour", select(colours, colour, (value) => change({ colour: value }))),
    labelled("Size", select([same, ...metrics], size, (value) => change({ size: value }))),
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

  /** Each is null, or a name and the ends of its scale; hops also have numbers of peers. */
  show(colour, size) {
    const key = JSON.stringify([themeName(), colour, size].map((of) => (of?.name ? { ...of, values: null } : of)));
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
  if (colour?.groups) return [groupsLegend(colour), size && scale(size, sizes())];
  if (colour?.name === HOPS) return [hopsLegend(colour), size && scale(size, sizes())];
  return [
    colour && scale(colour, h("div", { class: "ramp", style: `background:${gradient(ramp)}` })),
    size && scale(size, sizes()),
    colour?.unknown && h("div", { class: "key" },
      h("i", { style: `background:rgb(${unknown.join(" ")})` }), "unknown"),
  ];
}

const sizes = () => h("div", { class: "sizes" }, [6, 9, 12, 15, 18].map((px) =>
  h("i", { style: `width:${px}px;height:${px}px` })));

/** A colour, what it stands for, and its number of peers, or the numbers of two runs. */
const row = ([colour, text, count]) => h("div", { class: "key" },
  h("i", { style: `background:rgb(${colour.join(" ")})` }), h("span", { title: text }, short(text)),
  h("span", { class: "n" }, [count].flat().map((of) => number(of ?? 0)).join(" | ")));

const groupsLegend = (of) => h("figure", { "data-of": of.name, "aria-label": `Peers by ${title(of.name)}` },
  h("figcaption", {}, title(of.name)), groupRows(of).map(row));

/** Each hop with its colour and its number of peers (or the numbers of two runs), and those that cannot
 * be reached. */
function hopsLegend({ low, high, counts, unreachable }) {
  const { ramp, unknown } = theme();
  if (Number.isNaN(high)) return h("p", { class: "quiet" }, "Select a peer that is there at this time.");
  const reached = high <= MOST_HOPS ? Array.from({ length: high + 1 }, (_, hop) =>
    row([coloured(ramp, share(hop, low, high)), amount(hop, "hop"), counts[hop]]))
    : [h("div", { class: "ramp", style: `background:${gradient(ramp)}` }),
      h("div", { class: "ends" }, h("span", {}, number(low)), h("span", {}, amount(high, "hop")))];
  return h("figure", { "data-of": "hops", "aria-label": "Peers by hops from the selected one" },
    h("figcaption", {}, FROM_SELECTED), reached, row([unknown, "not reachable", unreachable]));
}

/** What a picture of an overlay shows, in a sentence or two for a caption. */
export function meaningOf({ facts, clock }, { topics, how, layers, colour, size, scale, layout, ...part }) {
  const names = (list) => list.join(", "), { groups } = facts.columns;
  const metrics = [colour && `Colour: ${title(colour)}.`, size && `Size: ${title(size)}.`,
    ((colour && !groups.some(({ name }) => name === colour)) || size) && `Scale: ${scale === "run" ? "whole run" : "this interval"}.`];
  return [
    topics.length && `${topics.length > 1 && how === "all" ? "All of the topics" : "Topics"}: `
      + `${names(topics.map((topic) => facts.topics[topic]))}${part.relays ? ", with relays" : ""}.`,
    ...leftOut(clock, part),
    `Layers: ${names(layers ?? facts.counted) || "all"}.`, ...metrics,
    `Layout: ${layout === "force" ? "by links" : "circle"}.`,
  ].filter(Boolean).join(" ");
}

/** What a window adds and filters leave out. */
const leftOut = (clock, { window, ego, component, least, most, hidden, only }) => [
  window && `At any time in the last ${windowText(clock, window)}.`,
  ego && `Within ${amount(ego, "hop")} of the selected peer.`,
  component && "In the component of the selected peer.",
  (least ?? most) !== null && `Degrees from ${number(least ?? 0)}${most === null ? "" : ` to ${number(most)}`}.`,
  only?.length && `Only ${amount(only.length, "chosen peer")}.`,
  hidden?.length && `${amount(hidden.length, "peer")} hidden.`,
];

/** The numbers of peers and links that are shown; null links are unknown. */
export const countsOf = ({ peers, pairs }) =>
  `${amount(peers, "peer")} and ${pairs === null ? "unknown links" : amount(pairs, "link")}`;

/** A run and its protocol, or source. */
export const nameOf = ({ run, protocol, source }) => `${run} (${protocol ?? source})`;
