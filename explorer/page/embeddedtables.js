/** The rows of an exported file's tables (explorer/offline/rows.py), as the server filters and sorts them. */

import { Refused } from "./data.js";
import { sampled } from "./time.js";

const PART = 100; // rows at once, as the server's
const OPEN = "9223372036854775807"; // an open end in CSV, as `vizpub export csv` writes it

export class EmbeddedTables {
  /** `described` are the tables of the run, `read(table)` gives the arrays of one. */
  constructor(facts, described, read) {
    this.described = described;
    this._facts = facts;
    this._read = read;
    this._opened = new Map();
  }

  /** A table by its name: its columns, each with a value for each row; null is unknown. */
  async _open(name) {
    const table = this.described.find((one) => one.name === name);
    if (!table) throw new Refused(`There is no table ${name}.`, "UnknownName");
    if (!this._opened.has(name)) {
      const columns = this._columns(table, await this._read(name));
      const names = { peer: this._facts.peers, topic: this._facts.topics };
      if (table.columns.some(({ of, named }) => named && of === "message")) {
        names.message = await this._messageNames();
      }
      const all = table.columns.flatMap((column) => [[column.name, columns[column.name]], ...(column.named
        ? [[`${column.name}_name`, columns[column.name].map((place) => names[column.of][place] ?? null)]] : [])]);
      this._opened.set(name, { table, columns: new Map(all), size: all[0][1].length });
    }
    return this._opened.get(name);
  }

  _columns(table, { meta, ...arrays }) {
    return Object.fromEntries(table.columns.map(({ name }) => {
      const texts = meta.texts[name], isFlag = meta.flags.includes(name);
      return [name, Array.from(arrays[name], (value) => {
        if (texts) return texts[value] ?? null;
        if (Number.isNaN(value)) return null;
        return isFlag ? value === 1 : value;
      })];
    }));
  }

  async _messageNames() {
    const { columns } = await this._open("publications");
    const names = [];
    columns.get("message").forEach((message, row) => (names[message] = columns.get("name")[row]));
    return names;
  }

  /** The rows of a query in its order, by their places, with their table. */
  async _find(query) {
    const opened = await this._open(query.get("table"));
    const { table, columns, size } = opened;
    const tests = this._tests(opened, query);
    const by = query.get("by") ?? "";
    if (by && !columns.has(by)) throw new Refused(`${table.name} has no column ${by}.`, "UnknownName");
    const keys = [...(by ? [[by, query.has("down") ? -1 : 1]] : []),
      ...table.key.filter((name) => name !== by).map((name) => [name, 1])].map(([name, sign]) => [columns.get(name), sign]);
    const places = Array.from({ length: size }, (_, row) => row).filter((row) => tests.every((test) => test(row)));
    places.sort((a, b) => {
      for (const [values, sign] of keys) {
        const order = compare(values[a], values[b], sign);
        if (order) return order;
      }
      return 0;
    });
    return { ...opened, places };
  }

  /** What a row must fulfil, for the parts of a filter that the table has columns for. */
  _tests({ table, columns }, query) {
    const tests = [], wanted = (name) => (query.has(name) ? Number(query.get(name)) : null);
    for (const kind of ["peer", "topic", "message"]) {
      const of = table.columns.filter((column) => column.of === kind).map(({ name }) => columns.get(name));
      const index = wanted(kind), end = kind === "peer" ? wanted("other_end") : null;
      if (index === null || !of.length) continue;
      if (end !== null && of.length > 1) {
        tests.push((row) => of.some((one, i) => one[row] === index && of.some((two, k) => k !== i && two[row] === end)));
      } else {
        tests.push((row) => of.some((values) => values[row] === index));
      }
    }
    const interval = wanted("interval");
    if (interval !== null && columns.has("interval")) {
      tests.push((row) => columns.get("interval")[row] === interval);
    } else if (interval !== null && columns.has("valid_from")) {
      const tick = sampled(this._facts.clock, interval);
      tests.push((row) => columns.get("valid_from")[row] <= tick && columns.get("valid_to")[row] > tick);
    }
    const text = (query.get("text") ?? "").toLowerCase();
    if (text) {
      const isText = ({ name, text: is }) => (is ? [columns.get(name)] : []);
      const texts = table.columns.flatMap((column) =>
        [...isText(column), ...(column.named ? [columns.get(`${column.name}_name`)] : [])]);
      tests.push((row) => texts.some((values) => values[row]?.toLowerCase().includes(text)));
    }
    return tests;
  }

  /** A part of the rows, as the server answers. */
  async rows(query) {
    const { columns, places } = await this._find(query);
    const first = Number(query.get("first")), all = [...columns.values()];
    return {
      total: places.length, first, columns: [...columns.keys()],
      rows: places.slice(first, first + PART).map((row) =>
        all.map((values) => (values[row] === Infinity ? "open" : values[row]))),
    };
  }

  /** All rows of a query. */
  async csv(query) {
    const { columns, places } = await this._find(query);
    const all = [...columns.values()];
    const lines = [[...columns.keys()], ...places.map((row) => all.map((values) => values[row]))];
    return lines.map((line) => `${line.map(field).join(",")}\n`).join("");
  }

  /** The values of a column in the rows for which `wanted(columns, row)`, interval by interval; NaN is
   * unknown. */
  async curve(table, name, wanted) {
    const { columns, size } = await this._open(table);
    const { first, last } = this._facts.clock, found = new Float64Array(last + 1 - first).fill(NaN);
    for (let row = 0; row < size; row++) {
      if (wanted(columns, row)) found[columns.get("interval")[row] - first] = columns.get(name)[row] ?? NaN;
    }
    return found;
  }

  /** The number of rows for which `wanted(columns, row)` in each interval. */
  async count(table, wanted) {
    const { columns, size } = await this._open(table);
    const { first, last } = this._facts.clock, found = new Float64Array(last + 1 - first);
    for (let row = 0; row < size; row++) {
      if (wanted(columns, row)) found[columns.get("interval")[row] - first]++;
    }
    return found;
  }
}

/** The order of values; unknown ones come last. Texts have the order of UTF-8, which is not JavaScript's. */
function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (typeof a === "string" ? compareTexts(a, b) : a === b ? 0 : a - b);
}

function compareTexts(a, b) {
  const isSurrogate = (unit) => (unit & 0xf800) === 0xd800; // of a character above all others
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const x = a.charCodeAt(i), y = b.charCodeAt(i);
    if (x !== y) return isSurrogate(x) - isSurrogate(y) || x - y;
  }
  return a.length - b.length;
}

function field(value) {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value === Infinity) return OPEN;
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
