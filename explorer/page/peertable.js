/** The peers of this time as a table: what a phone shows, and who has no WebGL or no use for it. */

import { fill, h } from "./dom.js";
import { groupText } from "./groups.js";
import { amount, number, short, title } from "./numbers.js";

const MOST = 200;

/** `peers` by number; `columns` are { name, values } by peer, the first one sorts. */
export function peerTable(element, names, peers, columns, selected, chosen) {
  const by = columns[0]?.values, sign = columns[0]?.groups ? -1 : 1; // common values are first
  const value = (peer) => (by && !Number.isNaN(by[peer]) ? sign * by[peer] : -Infinity);
  const sorted = [...peers].sort((a, b) => value(b) - value(a) || a - b);
  const head = ["Peer", ...columns.map(({ name }) => title(name))];
  const more = sorted.length - MOST;
  fill(
    element,
    h("table", {},
      h("caption", {}, `${amount(peers.length, "peer")} at this time`
        + (by ? columns[0].groups ? `, by ${title(columns[0].name)}` : `, the largest ${title(columns[0].name)} first` : "")),
      h("thead", {}, h("tr", {}, head.map((text, i) => h("th", { scope: "col", class: i ? "n" : "" }, text)))),
      h("tbody", {}, sorted.slice(0, MOST).map((peer) =>
        h("tr", { class: peer === selected ? "selected" : "" },
          h("th", { scope: "row" }, h("button", { type: "button", "data-peer": peer,
            onclick: () => chosen(peer) }, names[peer])),
          columns.map(({ values, groups }) => h("td", { class: "n" },
            groups ? short(groupText(groups, values[peer])) : number(values[peer]))))))),
    more > 0 ? h("p", { class: "quiet" }, `and ${number(more)} more`) : null,
  );
}
