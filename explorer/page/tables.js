/** The screen Tables: any table of a run, sorted and filtered, and as CSV. */

import * as address from "./address.js";
import { commands } from "./commands.js";
import { Run } from "./data.js";
import { checkbox, fill, h, labelled, select } from "./dom.js";
import { amount, number, short, title } from "./numbers.js";
import { search } from "./search.js";

const PART = 100; // as the server's
const PATIENCE = 250; // milliseconds after the last letter

/** Open a run and show its tables in an element. */
export async function showTables(page, name, state) {
  document.title = `Tables – ${name} – vizpub`;
  fill(page, h("main", { class: "waiting" }, h("p", {}, `Opening ${name} …`)));
  const run = await Run.open(name);
  return new TablesScreen(page, run, await run.tables(), state);
}

class TablesScreen {
  constructor(page, run, tables, state) {
    Object.assign(this, { screen: "tables", name: run.facts.run, run, tables });
    this._status = h("p", { class: "status", role: "alert" });
    this._head = h("div", { class: "filters" });
    this._filters = h("div", { class: "filters" });
    this._rows = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" });
    this._pages = h("div", { class: "pages" });
    this._menu = h("div", { class: "menu" });
    this._csv = h("a", { class: "button", download: "" }, "CSV");
    this._commands = h("div", {});
    this._text = h("input", {
      type: "search", "aria-label": "Part of a text", placeholder: "Part of a name or text …",
      spellcheck: "false", oninput: () => this._typed(),
    });
    fill(page, h("main", { class: "runs messages tables" },
      h("h1", {}, "Tables of ", this.name), this._head, this._filters, this._status, this._rows,
      this._pages, this._commands));
    this.show(state);
  }

  close() {
    this._loading?.abort();
    clearTimeout(this._typing);
  }

  get _table() {
    return this.tables.find(({ name }) => name === this.state.table) ?? this.tables[0];
  }

  /** Change what is shown. */
  update(changes) {
    this.state = { ...this.state, ...changes };
    address.push(address.write(this.name, "tables", this.state));
    this.show(this.state);
  }

  show(state) {
    this.state = state;
    if (document.activeElement !== this._text) this._text.value = state.text;
    this._showHead();
    this._showFilters();
    this.ready = this._load();
  }

  _typed() {
    clearTimeout(this._typing);
    this._typing = setTimeout(() => this.update({ text: this._text.value, first: 0 }), PATIENCE);
  }

  _showHead() {
    const table = this._table, { facts } = this.run;
    if (this._shownTable !== table.name) {
      this._shownTable = table.name;
      const pick = (kind, names) => table.filters.includes(kind) && names.length
        ? search(names, `Of a ${kind}`, (found) => this.update({ [kind]: found, first: 0 }), `Of a ${kind} …`, kind) : null;
      const interval = h("input", { type: "number", min: facts.clock.first, max: facts.clock.last, step: 1,
        onchange: () => this.update({ interval: interval.value === "" ? null : Math.max(Math.round(Number(interval.value)), 0), first: 0 }) });
      this._interval = table.filters.includes("interval") ? interval : null;
      fill(this._head,
        labelled("Table", select(this.tables.map(({ name, rows }) => [name, `${name} (${number(rows)})`]), table.name,
          (name) => this.update({ table: name, by: "", down: 0, first: 0, columns: null }))),
        this._interval && labelled("Interval", interval), pick("peer", facts.peers), pick("topic", facts.topics), this._text,
        h("details", { class: "chooser" }, h("summary", {}, "Columns"), this._menu), this._csv);
    }
    if (this._interval) this._interval.value = this.state.interval ?? "";
  }

  /** What the rows are of, each to be taken back. */
  _showFilters() {
    const { facts } = this.run, { text, message } = this.state;
    const tag = (kind, value, plain = null) => h("span", { class: "filter" }, `${kind} `,
      h("strong", { title: value }, short(value, 40)),
      h("button", { type: "button", "aria-label": `Of any ${kind}`, title: `Of any ${kind}`,
        onclick: () => { this.update({ [kind]: plain, first: 0 }); if (kind === "text") this._text.value = ""; } }, "×"));
    const named = (kind, names) => {
      const value = this.state[kind];
      return value === null || !this._table.filters.includes(kind) ? null : tag(kind, names[value] ?? `#${value}`);
    };
    fill(this._filters, h("span", { class: "quiet" }, `One row: ${this._table.row}.`),
      named("peer", facts.peers), named("topic", facts.topics),
      message === null || !this._table.filters.includes("message") ? null : tag("message", `#${message}`),
      text ? tag("text", text, "") : null);
  }

  /** What to ask the server. */
  get _query() {
    const { columns, table, ...query } = this.state;
    return { ...query, table: this._table.name };
  }

  async _load() {
    this._loading?.abort();
    const { signal } = (this._loading = new AbortController());
    try {
      this._csv.href = this.run.csv(this._query);
      this._showRows(await this.run.rows(this._query, signal));
      this._say("");
    } catch (error) {
      if (error.name !== "AbortError") this._say(error.message);
    }
  }

  _say(text) {
    this._status.textContent = text;
    this._status.classList.toggle("empty", !text);
  }

  _showRows({ total, first, columns, rows, command }) {
    const { by, down } = this.state;
    const names = columns.filter((name) => !this._isIndex(name, columns));
    const shown = this.state.columns?.filter((name) => names.includes(name)) ?? names;
    fill(this._menu, names.map((name) => {
      const box = checkbox(title(name), shown.includes(name), (on) =>
        this.update({ columns: names.filter((other) => (other === name ? on : shown.includes(other))) }));
      box.title = this._about(name)?.meaning ?? "";
      return box;
    }));
    const head = shown.map((name) => {
      const isSorted = name === by, about = this._about(name);
      const unit = about?.unit ? ` (${about.unit})` : "";
      return h("th", { scope: "col", class: this._isText(name) ? "" : "n", title: about?.meaning ?? "",
        "aria-sort": isSorted ? (down ? "descending" : "ascending") : null },
      h("button", { type: "button", title: `Sort by ${title(name)}: ${about?.meaning ?? "its name"}`,
        onclick: () => this.update({ by: name, down: isSorted ? 1 - down : 0, first: 0 }) },
      title(name.replace(/_name$/, "")), unit, h("span", { "aria-hidden": "true" }, isSorted ? (down ? " ↓" : " ↑") : "")));
    });
    const places = shown.map((name) => columns.indexOf(name));
    fill(this._rows, rows.length ? h("table", {},
      h("caption", { class: "told" }, `Rows ${number(first + 1)} to ${number(first + rows.length)} of ${number(total)}`),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, rows.map((row) => h("tr", {}, shown.map((name, i) =>
        h("td", { class: this._isText(name) ? "" : "n", "data-of": name }, this._cell(name, row[places[i]], columns, row)))))))
      : h("p", { class: "none" }, "There are no such rows."));
    const to = (text, at) => h("button", { type: "button", disabled: at < 0 || at >= total,
      onclick: () => this.update({ first: at }) }, text);
    fill(this._pages, total > PART ? [to("Previous", first ? Math.max(first - PART, 0) : -1), to("Next", first + PART),
      h("span", { class: "quiet" }, `${amount(total, "row")} in all`)] : null);
    fill(this._commands, commands([["vizpub", command]]));
  }

  /** True for an index that has its name beside it. */
  _isIndex(name, columns) {
    return columns.includes(`${name}_name`);
  }

  _about(name) {
    const column = name.replace(/_name$/, "");
    return this._table.columns.find((one) => one.name === name) ?? this._table.columns.find((one) => one.name === column);
  }

  _isText(name) {
    const about = this._table.columns.find((one) => one.name === name);
    return about ? about.text : true;
  }

  /** A value; a name leads to what it names. */
  _cell(name, value, columns, row) {
    if (value === null) return "–";
    const kind = this._about(name)?.of;
    const key = name.endsWith("_name") ? name.slice(0, -5) : name;
    const index = kind && columns.includes(key) ? row[columns.indexOf(key)] : null;
    const isOwn = ["peers", "topics", "publications"].includes(this._table.name) && name === "name";
    const place = isOwn ? row[0] : index;
    if (place === null || !(isOwn || name.endsWith("_name"))) {
      return typeof value === "string" ? short(value, 60) : number(value);
    }
    const what = isOwn ? { peers: "peer", topics: "topic", publications: "message" }[this._table.name] : kind;
    return h("a", { href: this._link(what, place), title: value }, short(value, 32));
  }

  _link(kind, place) {
    if (kind === "message") return address.write(this.name, "message", { m: place });
    return address.write(this.name, "overlay", kind === "peer" ? { sel: place } : { topics: [place] });
  }
}
