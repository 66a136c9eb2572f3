/** The screen Tables: any table of a run, sorted and filtered, and as CSV. */

import { partOf } from "./aboutfile.js";
import * as address from "./address.js";
import { commands } from "./commands.js";
import { Run } from "./data.js";
import { checkbox, fill, h, labelled, select, tag, wholeNumber } from "./dom.js";
import { amount, number, title } from "./numbers.js";
import { about, readable, rowTable } from "./rowtable.js";
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
      const interval = wholeNumber((place) => this.update({ interval: place, first: 0 }),
        { min: facts.clock.first, max: facts.clock.last });
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
    const { facts } = this.run, { text } = this.state;
    const filter = (kind, value, plain = null) => tag(title(kind), value, `Of any ${title(kind)}`, () => {
      this.update({ [kind]: plain, first: 0 });
      if (kind === "text") this._text.value = "";
    });
    const named = (kind, names) => {
      const value = this.state[kind];
      return value === null || !this._table.filters.includes(kind) ? null : filter(kind, names[value] ?? `#${value}`);
    };
    fill(this._filters, h("span", { class: "quiet" }, `One row: ${this._table.row}.${partOf(facts)}`),
      named("peer", facts.peers), named("other_end", facts.peers), named("topic", facts.topics),
      named("message", {}), text ? filter("text", text, "") : null);
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
      this._csv.hidden = false;
      this._say("");
    } catch (error) {
      if (error.name === "AbortError") return;
      this._say(error.message);
      this._csv.hidden = true;
      for (const element of [this._rows, this._pages, this._commands]) fill(element);
    }
  }

  _say(text) {
    this._status.textContent = text;
    this._status.classList.toggle("empty", !text);
  }

  _showRows(part) {
    const { total, first, rows, command } = part, { by, down } = this.state, table = this._table;
    const names = readable(part.columns);
    const shown = this.state.columns?.filter((name) => names.includes(name)) ?? names;
    fill(this._menu, names.map((name) => {
      const box = checkbox(title(name), shown.includes(name), (on) =>
        this.update({ columns: names.filter((other) => (other === name ? on : shown.includes(other))) }));
      box.title = about(table, name).meaning;
      return box;
    }));
    const caption = `Rows ${number(first + 1)} to ${number(first + rows.length)} of ${number(total)}`;
    const sort = { by, down, sorted: (name) => this.update({ by: name, down: name === by ? 1 - down : 0, first: 0 }) };
    fill(this._rows, rows.length ? rowTable(this.run, table, part, shown, caption, sort)
      : h("p", { class: "none" }, "There are no such rows."));
    const to = (text, at) => h("button", { type: "button", disabled: at < 0 || at >= total,
      onclick: () => this.update({ first: at }) }, text);
    fill(this._pages, total > PART ? [to("Previous", first ? Math.max(first - PART, 0) : -1), to("Next", first + PART),
      h("span", { class: "quiet" }, `${amount(total, "row")} in all`)] : null);
    fill(this._commands, command ? commands([["vizpub", command]]) : null);
  }
}
