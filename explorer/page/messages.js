/** The screen Messages: a table of the messages of a run, a topic or a publisher, and how they spread. */

import * as address from "./address.js";
import { coverageChart, leftOut } from "./coverage.js";
import { Run } from "./data.js";
import { choice, fill, h, tag } from "./dom.js";
import { elapsed } from "./messagetime.js";
import { amount, number, short } from "./numbers.js";
import { search } from "./search.js";

const PART = 100; // as the server's
const PATIENCE = 250; // milliseconds after the last letter

const COLUMNS = [
  ["message", "Message"], ["topic", "Topic"], ["publisher", "Publisher"], ["time_us", "Published"],
  ["eligible", "Eligible"], ["delivered", "Delivered"], ["hit_ratio", "Hit ratio"], ["hops_max", "Hops"],
  ["delay_us_p50", "Median delay"], ["delay_us_p95", "95 % delay"], ["delay_us_max", "Largest delay"],
  ["duplicates", "Duplicates"], ["rejections", "Refused"],
];
const TEXTS = ["message", "topic", "publisher"];

/** Open a run and show its messages in an element. */
export async function showMessages(page, name, state) {
  document.title = `Messages – ${name} – vizpub`;
  fill(page, h("main", { class: "waiting" }, h("p", {}, `Opening ${name} …`)));
  return new MessagesScreen(page, name, await Run.open(name), state);
}

class MessagesScreen {
  constructor(page, name, run, state) {
    this.screen = "messages";
    this.name = name;
    this.run = run;
    this.state = state;
    this._status = h("p", { class: "status", role: "alert" });
    this._filters = h("div", { class: "filters" });
    this._coverage = h("section", { class: "card", "aria-label": "Coverage" });
    this._table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Messages" });
    this._pages = h("div", { class: "pages" });
    const { topics, peers } = run.facts;
    const pick = (names, key, kind) => search(names, `Of a ${kind}`, (found) => this.update({ [key]: found, first: 0 }),
      `Of a ${kind} …`, kind === "publisher" ? "peer" : kind);
    this._text = h("input", {
      type: "search", "aria-label": "Part of a message's name", placeholder: "Part of the name …", spellcheck: "false",
      oninput: () => this._typed(),
    });
    fill(page, h("main", { class: "runs messages" },
      h("h1", {}, "Messages of ", name),
      h("div", { class: "filters" }, topics.length ? pick(topics, "topic", "topic") : null,
        pick(peers, "publisher", "publisher"), this._text),
      this._filters, this._status, this._coverage, this._table, this._pages));
    this.show(state);
  }

  close() {
    this._loading?.abort();
    clearTimeout(this._typing);
  }

  /** Change what is shown. */
  update(changes) {
    this.state = { ...this.state, ...changes };
    address.push(address.write(this.name, "messages", this.state));
    this.show(this.state);
  }

  show(state) {
    this.state = state;
    if (document.activeElement !== this._text) this._text.value = state.text;
    this._showFilters();
    this.ready = this._load();
  }

  _typed() {
    clearTimeout(this._typing);
    this._typing = setTimeout(() => this.update({ text: this._text.value, first: 0 }), PATIENCE);
  }

  /** What the messages are of, each to be taken back. */
  _showFilters() {
    const { topic, publisher, text } = this.state;
    const { topics, peers } = this.run.facts;
    const of = (kind, place, names, page) => (place === null ? null : tag(kind, names[place] ?? `#${place}`, `Of any ${kind}`,
      () => this.update({ [kind]: null, first: 0 }), address.page(this.name, page, place)));
    fill(this._filters, of("topic", topic, topics, "topic"), of("publisher", publisher, peers, "peer"),
      text ? tag("name", text, "Of any name", () => {
        this.update({ text: "", first: 0 });
        this._text.value = "";
      }) : null);
  }

  async _load() {
    this._loading?.abort();
    const { signal } = (this._loading = new AbortController());
    const { along, ...asked } = this.state;
    try {
      this._showTable(await this.run.messages(asked, signal));
      this._say("");
    } catch (error) {
      if (error.name !== "AbortError") this._say(error.message);
      return;
    }
    await this._loadCoverage(asked, along, signal);
  }

  async _loadCoverage({ topic, publisher, text }, along, signal) {
    const why = this.run.facts.unknown_coverage;
    const by = [along, "hop", "delay"].find((way) => why[way] === null);
    try {
      if (!by) throw new Error(why[along]);
      this._showCoverage(await this.run.coverage({ topic, publisher, text }, by, signal), by, why.delay ?? why.hop);
    } catch (error) {
      if (error.name !== "AbortError") fill(this._coverage, h("h2", {}, "Coverage"), h("p", { class: "quiet" }, error.message));
    }
  }

  _showCoverage(found, by, why) {
    const said = by === "hop" ? (at) => number(Number(at.toFixed(1))) : elapsed;
    fill(this._coverage,
      h("div", { class: "title" }, h("h2", {}, "Coverage: share of eligible peers that each message reached"),
        why ? null : choice("Along", [["delay", "time"], ["hop", "hops"]], by, (along) => this.update({ along }))),
      why ? h("p", { class: "quiet" }, `By ${by === "hop" ? "hop" : "time"}: ${why}`) : null,
      found.meta.messages ? coverageChart(found, said, by === "hop" ? "by hop" : "by time since its publication")
        : h("p", { class: "quiet" }, "No message to show."),
      h("p", { class: "quiet" }, leftOut(found.meta)));
  }

  _say(text) {
    this._status.textContent = text;
    this._status.classList.toggle("empty", !text);
  }

  _showTable({ meta, ...columns }) {
    const { total, first, names } = meta;
    const { by, down } = this.state;
    const head = COLUMNS.map(([name, text]) => {
      const here = name === by;
      return h("th", { scope: "col", class: TEXTS.includes(name) ? "" : "n",
        "aria-sort": here ? (down ? "descending" : "ascending") : null },
      h("button", { type: "button", title: `Sort by ${text.toLowerCase()}`, onclick: () => this._sort(name) },
        text, h("span", { "aria-hidden": "true" }, here ? (down ? " ↓" : " ↑") : "")));
    });
    fill(this._table, names.length ? h("table", {},
      h("caption", { class: "told" }, `Messages ${number(first + 1)} to ${number(first + names.length)} of ${number(total)}`),
      h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, names.map((name, i) => this._row(name, (column) => columns[column][i]))))
      : h("p", { class: "none" }, "There are no such messages."));
    const to = (text, at) => h("button", { type: "button", disabled: at < 0 || at >= total,
      onclick: () => this.update({ first: at }) }, text);
    fill(this._pages, total > PART ? [to("Previous", first ? Math.max(first - PART, 0) : -1), to("Next", first + PART),
      h("span", { class: "quiet" }, `${amount(total, "message")} in all`)] : null);
  }

  _row(name, value) {
    const { topics, peers, run } = this.run.facts;
    const one = (column, key, names) => (Number.isNaN(value(column)) ? "–"
      : h("a", { href: address.write(run, "messages", { [key]: value(column) }), title: names[value(column)] },
        short(names[value(column)] ?? "", 20)));
    const shown = (column) => {
      const of = value(column);
      return column.endsWith("_us") || column.startsWith("delay_") ? elapsed(of) : number(of);
    };
    return h("tr", {},
      h("th", { scope: "row" }, h("a", { href: address.write(run, "message", { m: value("message") }), title: name }, short(name, 22))),
      h("td", {}, one("topic", "topic", topics)), h("td", {}, one("publisher", "publisher", peers)),
      COLUMNS.slice(3).map(([column]) => h("td", { class: "n", "data-of": column }, shown(column))));
  }

  /** By the other end first where the interesting ones are: the most hops, the longest delays. */
  _sort(by) {
    const rising = [...TEXTS, "time_us", "hit_ratio", "delivered"].includes(by);
    const down = by === this.state.by ? 1 - this.state.down : rising ? 0 : 1;
    this.update({ by, down, first: 0 });
  }
}
