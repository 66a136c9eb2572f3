/** Rows of a run's tables as HTML: what they name leads to its page. */

import { page, write } from "./address.js";
import { h } from "./dom.js";
import { number, short, title } from "./numbers.js";
import { periodText, shareOf } from "./time.js";

const OWN = { peers: "peer", topics: "topic", publications: "message" };
const ENDS = [["src", "dst"], ["previous_hop", "peer"]];
/** Columns that are made of others: the intervals of a validity period, and the link between two peers. */
const PERIOD = "period", LINK = "link";
const HEADINGS = { [PERIOD]: "in intervals" };
const MEANINGS = {
  [PERIOD]: "intervals that the validity period touches", [LINK]: "the page of the link",
};

const endsIn = (columns) => ENDS.find((ends) => ends.every((name) => columns.includes(name)));

/** The columns that people read: without indexes that have their names beside them. */
export const readable = (columns) => [
  ...columns.filter((name) => !columns.includes(`${name}_name`)),
  ...(columns.includes("valid_from") ? [PERIOD] : []), ...(endsIn(columns) ? [LINK] : []),
];

/** What a column, or the one whose names it has, means: meaning, unit, of, text. */
export function about(table, name) {
  const column = name.replace(/_name$/, "");
  return table.columns.find((one) => one.name === name) ?? table.columns.find((one) => one.name === column)
    ?? { meaning: MEANINGS[name] ?? "", unit: "", of: "", text: true };
}

/**
 * The `shown` columns of the rows of a part (Run.rows) of a table. With `sort`, headings are buttons:
 * { by, down, sorted(by) }.
 */
export function rowTable(run, table, { columns, rows }, shown, caption, sort = null) {
  const isText = (name) => table.columns.find((one) => one.name === name)?.text ?? true;
  const head = shown.map((name) => {
    const { meaning, unit } = about(table, name), isSorted = sort?.by === name;
    const text = [HEADINGS[name] ?? title(name.replace(/_name$/, "")), unit ? ` (${unit})` : ""];
    const isMade = Object.hasOwn(MEANINGS, name) && !columns.includes(name);
    return h("th", { scope: "col", class: isText(name) ? "" : "n", title: meaning,
      "aria-sort": isSorted ? (sort.down ? "descending" : "ascending") : null },
    sort && !isMade ? h("button", { type: "button", title: `Sort by ${title(name)}: ${meaning}`,
      onclick: () => sort.sorted(name) },
    text, h("span", { "aria-hidden": "true" }, isSorted ? (sort.down ? " ↓" : " ↑") : "")) : text);
  });
  return h("table", {},
    h("caption", { class: "told" }, caption),
    h("thead", {}, h("tr", {}, head)),
    h("tbody", {}, rows.map((row) => h("tr", {}, shown.map((name) =>
      h("td", { class: isText(name) ? "" : "n", "data-of": name }, cell(run, table, name, columns, row)))))));
}

/** A value of a row; a name leads to what it names. */
function cell(run, table, name, columns, row) {
  const value = (column) => row[columns.indexOf(column)];
  if (!columns.includes(name)) return name === LINK ? linkCell(run, columns, value) : periodCell(run.clock, value);
  if (value(name) === null) return "–";
  const isOwn = name === "name" && Object.hasOwn(OWN, table.name);
  if (!isOwn && !name.endsWith("_name")) {
    return typeof value(name) === "string" ? short(value(name), 60) : number(value(name));
  }
  const [kind, place] = isOwn ? [OWN[table.name], row[0]] : [about(table, name).of, value(name.slice(0, -5))];
  return h("a", { href: page(run.facts.run, kind, place), title: value(name) }, short(value(name), 32));
}

function periodCell(clock, value) {
  const [begin, end] = [value("valid_from"), value("valid_to")].map((tick) => (tick === "open" ? null : tick));
  const from = shareOf(clock, begin), to = shareOf(clock, end);
  return [h("span", { class: "when" }, periodText(clock, [begin, end])), h("span", { class: "lasting", "aria-hidden": "true" },
    h("i", { style: `left:${100 * from}%;width:${100 * (to - from)}%` }))];
}

function linkCell(run, columns, value) {
  const [src, dst] = endsIn(columns).map(value);
  if (src === null || dst === null) return "–";
  const { run: name, peers } = run.facts;
  return h("a", { href: write(name, "link", { src, dst }), "aria-label": `Link between ${peers[src]} and ${peers[dst]}` }, "↔");
}
