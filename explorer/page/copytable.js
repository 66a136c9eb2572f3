/** The copies of a message as a table, and who missed it: what shows all of it without a picture. */

import { fill, h } from "./dom.js";
import { FIRST, REFUSED } from "./messagedata.js";
import { placed } from "./messagetime.js";
import { amount, number } from "./numbers.js";

const MOST = 200;

export class CopyTable {
  constructor(names, chosen) {
    this._names = names;
    this._chosen = chosen;
    this._most = MOST;
    this.element = h("div", { class: "table scroll", tabindex: "0", role: "region", "aria-label": "Copies" });
  }

  /** The copies that had arrived at a place of the clock, and the peers that missed the message. */
  show(way, at, { sel, duplicates, missed }) {
    this._shown = [way, at, { sel, duplicates, missed }];
    const { message, order } = way;
    const arrived = Array.from(order.subarray(0, way.count(at)));
    const rows = arrived.filter((i) => duplicates || message.kind[i] !== 1);
    const total = Array.from(order).filter((i) => duplicates || message.kind[i] !== 1).length;
    const more = rows.length - this._most;
    const what = duplicates ? ["copy", "copies"] : ["first copy or refusal", "first copies and refusals"];
    fill(this.element,
      this._missed(missed, sel),
      h("table", { class: "copies" },
        h("caption", {}, `${number(rows.length)} of ${number(total)} ${what[total === 1 ? 0 : 1]} by then`),
        head(["#", way.by === "hop" ? "Hop" : "After", "From", "To", ...(way.by === "hop" ? [] : ["Hop"]), "Kind"]),
        h("tbody", {}, rows.slice(0, this._most).map((i, rank) => this._row(way, i, rank, sel)))),
      more > 0 ? h("p", { class: "more" }, `${number(more)} more. `,
        h("button", { type: "button", onclick: () => this._show(more) }, `Show ${number(Math.min(more, MOST))} of them`)) : null);
  }

  _show(more) {
    this._most += Math.min(more, MOST);
    this.show(...this._shown);
  }

  _row(way, i, rank, sel) {
    const { message } = way;
    const { kind, from, to, hop } = message;
    const known = way.by === "hop" ? hop[i] >= 0 : !Number.isNaN(message.time[i]);
    const when = known ? placed(way, way.at[i]).replace(/^hop /, "") : "unknown";
    const is = [
      kind[i] === REFUSED ? `refused: ${message.why(i)}` : kind[i] === FIRST ? "first" : "duplicate",
      message.relayed[i] ? "relay" : "",
    ].filter(Boolean).join(", ");
    const near = sel !== null && (from[i] === sel || to[i] === sel);
    return h("tr", { "data-copy": i, class: [near && "selected", kind[i] === FIRST ? "" : "faint"].filter(Boolean).join(" ") },
      h("td", { class: "n" }, number(rank + 1)), h("td", { class: "n" }, when),
      h("td", {}, from[i] < 0 ? "unknown" : this._button(from[i])), h("th", { scope: "row" }, this._button(to[i])),
      way.by === "hop" ? null : h("td", { class: "n" }, hop[i] < 0 ? "–" : number(hop[i])), h("td", {}, is));
  }

  _button(peer) {
    return h("button", { type: "button", "data-peer": peer, title: this._names[peer],
      onclick: () => this._chosen(peer) }, this._names[peer]);
  }

  _missed(missed, sel) {
    if (!missed?.length) return null;
    const more = missed.length - this._most;
    return [h("table", { class: "missed" },
      h("caption", {}, `${amount(missed.length, "eligible peer")} missed it`),
      head(["Peer", "Neighbours", "With it", "Why"]),
      h("tbody", {}, missed.slice(0, this._most).map(({ peer, neighbours, neighbours_with_it, why }) =>
        h("tr", { class: peer === sel ? "selected" : "" },
          h("th", { scope: "row" }, this._button(peer)), h("td", { class: "n" }, number(neighbours)),
          h("td", { class: "n" }, number(neighbours_with_it)), h("td", {}, why ?? "unknown"))))),
    more > 0 ? h("p", { class: "quiet" }, `and ${number(more)} more: see the command`) : null];
  }
}

const NUMBERS = ["#", "Hop", "After", "Neighbours", "With it"];

const head = (texts) => h("thead", {}, h("tr", {}, texts.map((text) =>
  h("th", { scope: "col", class: NUMBERS.includes(text) ? "n" : "" }, text))));
