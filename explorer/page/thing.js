/** The screens Peer, Topic and Link: one thing, with its values over time, its rows in all tables, and
 * what gives the same elsewhere. */

import { partOf } from "./aboutfile.js";
import * as address from "./address.js";
import { commands } from "./commands.js";
import { ends, withRange } from "./curves.js";
import { Run } from "./data.js";
import { fill, h, labelled, wholeNumber } from "./dom.js";
import { number, short, title } from "./numbers.js";
import { linkCommands, peerHistoryCommands, topicCommands } from "./printed.js";
import { rowTable } from "./rowtable.js";
import { sampled, spoken } from "./time.js";

/**
 * By the kind of a thing:
 *     word        what people call it
 *     ids         what its address numbers
 *     names(facts, state)    its name, or those of its ends
 *     rows(state) the filter of its rows
 *     tables      [table, heading, columns]
 *     links(facts, state)    [screen, state, text] of where else it is shown
 *     commands    what gives the same
 */
const KINDS = {
  peer: {
    word: "Peer", ids: ["peer"], names: ({ peers }, { peer }) => [peers[peer]], rows: ({ peer }) => ({ peer }),
    tables: [
      ["presence", "Presence", ["period"]],
      ["links", "Links to and from its neighbours", ["src_name", "dst_name", "layer", "topic_name", "period", "link"]],
      ["subscriptions", "Topics", ["topic_name", "period"]],
      ["roles", "Roles", ["role", "topic_name", "period"]],
      ["attributes", "Attributes", ["key", "value", "period"]],
      ["publications", "Messages that it published", ["name", "topic_name", "interval"]],
    ],
    links: ({ knows }, { peer }) => [["overlay", { sel: peer }, "In the overlay"],
      knows.publications && ["messages", { publisher: peer }, "How its messages spread"]],
    commands: peerHistoryCommands,
  },
  topic: {
    word: "Topic", ids: ["topic"], names: ({ topics }, { topic }) => [topics[topic]], rows: ({ topic }) => ({ topic }),
    tables: [
      ["subscriptions", "Subscribers", ["peer_name", "period"]],
      ["links", "Links that serve it", ["src_name", "dst_name", "layer", "period", "link"]],
      ["roles", "Roles", ["role", "peer_name", "period"]],
      ["publications", "Messages", ["name", "publisher_name", "interval"]],
    ],
    links: ({ knows }, { topic }) => [["overlay", { topics: [topic] }, "In the overlay"],
      knows.publications && ["messages", { topic }, "How its messages spread"]],
    commands: topicCommands,
  },
  link: {
    word: "Link", ids: ["src", "dst"], names: ({ peers }, { src, dst }) => [peers[src], peers[dst]],
    rows: ({ src, dst }) => ({ peer: src, other_end: dst }),
    tables: [
      ["links", "Validity periods", ["src_name", "dst_name", "layer", "topic_name", "period"]],
      ["receptions", "Copies of messages that came over it",
        ["message_name", "previous_hop_name", "peer_name", "interval", "hop", "delay_us", "first"]],
      ["rejections", "Copies that were refused", ["message_name", "previous_hop_name", "peer_name", "interval", "reason"]],
    ],
    links: (_, { src, dst }) => [["overlay", { sel: src, to: dst }, "In the overlay"]],
    commands: linkCommands,
  },
};

export const showPeer = (...shown) => showThing("peer", ...shown);
export const showTopic = (...shown) => showThing("topic", ...shown);
export const showLink = (...shown) => showThing("link", ...shown);

/** Open a run and show one of its things in an element. */
async function showThing(kind, page, name, state) {
  document.title = `${KINDS[kind].word} – ${name} – vizpub`;
  fill(page, h("main", { class: "waiting" }, h("p", {}, `Opening ${name} …`)));
  const run = await Run.open(name);
  return new ThingScreen(page, kind, run, await run.tables(), state);
}

class ThingScreen {
  constructor(page, kind, run, tables, state) {
    Object.assign(this, { screen: kind, name: run.facts.run, run, tables });
    this._kind = KINDS[kind];
    this._columns = run.facts.columns[`${kind}s`];
    this._main = h("main", { class: "runs messages thing" });
    fill(page, this._main);
    this.show(state);
  }

  close() {
    this._loading?.abort();
  }

  /** Change what is shown. */
  update(changes) {
    this.state = { ...this.state, ...changes };
    address.push(address.write(this.name, this.screen, this.state));
    this.show(this.state);
  }

  show(state) {
    const { first, last } = this.run.clock;
    const interval = state.interval === null ? null : Math.min(Math.max(state.interval, first), last);
    this.state = { ...state, interval };
    this._loading?.abort();
    const { signal } = (this._loading = new AbortController());
    this.ready = this._show(signal).catch((error) => error.name === "AbortError" || this._fail(error.message));
  }

  async _show(signal) {
    const names = this._kind.names(this.run.facts, this.state);
    if (names.includes(undefined)) return this._fail(`The run has no such ${this.screen}.`);
    const key = this._kind.ids.map((id) => this.state[id]).join();
    if (key !== this._built) {
      this._build(names);
      this._built = key;
      await Promise.all([this._showCurves(signal), this._showRows(signal)]);
    } else {
      this._showInterval();
      await this._showRows(signal);
    }
  }

  _fail(text) {
    fill(this._main, h("p", { role: "alert" }, text));
    this._built = null;
  }

  _build(names) {
    const { facts, clock } = this.run;
    document.title = `${names.map((name) => short(name)).join(" – ")} – ${this.name} – vizpub`;
    const link = (href, text) => h("a", { href, title: text }, text);
    const heading = names.length === 1 ? names[0]
      : names.map((name, i) => [i ? " ↔ " : "", link(address.page(this.name, "peer", this.state[this._kind.ids[i]]), name)]);
    this._interval = wholeNumber((interval) => this.update({ interval }),
      { min: clock.first, max: clock.last, placeholder: "all" });
    this._whole = h("button", { type: "button", class: "small", onclick: () => this.update({ interval: null }) }, "All intervals");
    this._about = h("p", { class: "quiet" });
    this._curves = h("div", { class: "history grid" });
    this._sections = this._kind.tables.map(([name, text]) => {
      const table = this.tables.find((one) => one.name === name);
      return table && { table, text, element: h("section", { class: "card", "aria-label": text }) };
    });
    this._commands = h("div", {});
    const unknown = this._kind.tables.filter((_, i) => !this._sections[i]).map(([name]) => name.replaceAll("_", " "));
    fill(this._main,
      h("p", { class: "quiet" }, `${this._kind.word} of ${this.name}`),
      h("h1", { class: "name" }, heading),
      h("p", { class: "links" }, this._kind.links(facts, this.state).filter(Boolean).map(([screen, state, text]) =>
        link(address.write(this.name, screen, state), text))),
      h("div", { class: "filters" }, labelled("At the end of interval", this._interval, { class: "field inline" }), this._whole, this._about),
      this._columns.length ? h("section", { class: "card", "aria-label": "Values over time" },
        h("h2", {}, "Values over time"), this._curves) : null,
      this._sections.filter(Boolean).map(({ element }) => element),
      unknown.length ? h("p", { class: "quiet" }, `Unknown in this run: ${unknown.join(", ")}.`) : null,
      this._commands);
    this._values = new Map();
    this._showInterval();
  }

  /** The interval whose values are shown. */
  get _shown() {
    return this.state.interval ?? this.run.clock.last;
  }

  _showInterval() {
    const { clock, facts } = this.run, { interval } = this.state;
    this._interval.value = interval ?? "";
    this._whole.hidden = interval === null;
    this._about.textContent = (interval === null
      ? `Rows of all intervals, values of the last one, ${number(clock.last)}.`
      : `Rows and values at the end of ${spoken(clock, sampled(clock, interval))}.`) + partOf(facts);
    const length = clock.last - clock.first;
    this._curves.style.setProperty("--at", length ? (this._shown - clock.first) / length : 0);
    for (const [values, element] of this._values.values()) element.textContent = number(values[this._shown - clock.first]);
    fill(this._commands, commands(this._kind.commands(facts, this.state)));
  }

  async _showCurves(signal) {
    const ids = Object.fromEntries(this._kind.ids.map((id) => [id, this.state[id]]));
    let all;
    try {
      all = await this.run.curvesOf(this.screen, ids, this._columns.map(({ name }) => name), signal);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      return fill(this._curves, h("p", { class: "quiet" }, error.message));
    }
    const isKnown = this._columns.map((_, i) => ends(all[i]) !== null);
    const unknown = this._columns.filter((_, i) => !isKnown[i]).map(({ name }) => title(name));
    fill(this._curves, this._columns.map((column, i) => isKnown[i] && this._curve(column, all[i])),
      unknown.length ? h("p", { class: "quiet" }, `Unknown: ${unknown.join(", ")}.`) : null);
    this._showInterval();
  }

  _curve({ name, meaning, unit }, values) {
    const value = h("strong", {});
    this._values.set(name, [values, value]);
    const figure = h("figure", { "data-of": name, title: meaning },
      h("figcaption", {}, h("span", {}, title(name), unit ? ` (${unit})` : ""), value), withRange(values));
    figure.querySelector(".track").addEventListener("pointerdown", (event) => this._go(event));
    return figure;
  }

  /** Go to the interval of a curve that is clicked. */
  _go(event) {
    const { left, width } = event.currentTarget.getBoundingClientRect(), { first, last } = this.run.clock;
    this.update({ interval: Math.round(first + ((event.clientX - left) / width) * (last - first)) });
  }

  _showRows(signal) {
    return Promise.all(this._sections.map((section, i) => section && this._showSection(section, this._kind.tables[i][2], signal)));
  }

  async _showSection({ table, text, element }, columns, signal) {
    const { interval } = this.state;
    const filter = { ...this._kind.rows(this.state), interval };
    const by = table.columns.some(({ name }) => name === "valid_from") ? "valid_from" : "";
    const query = { table: table.name, by, first: 0, ...filter };
    let part;
    try {
      part = await this.run.rows(query, signal);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      return fill(element, h("h2", {}, text), h("p", { class: "quiet" }, error.message));
    }
    const { rows, total } = part;
    const shown = columns.filter((name) => name === "period" || name === "link" || part.columns.includes(name));
    const href = address.write(this.name, "tables", { ...filter, table: table.name, by });
    fill(element,
      h("div", { class: "title" }, h("h2", {}, `${text} (${number(total)})`),
        h("span", { class: "links" }, h("a", { href, "aria-label": `${text} in Tables` }, "In Tables"),
          h("a", { download: "", href: this.run.csv(query), "aria-label": `${text} as CSV` }, "CSV"))),
      rows.length ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": text },
        rowTable(this.run, table, part, shown, rows.length < total ? `The first ${number(rows.length)} of ${number(total)}` : ""))
        : h("p", { class: "quiet" }, interval === null ? "None." : "None at this time."));
  }
}
