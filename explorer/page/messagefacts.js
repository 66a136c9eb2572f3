/** The left side of the screen Message: what the message is, how it is shown, and what had happened. */

import { page, write } from "./address.js";
import { coloured, gradient, theme } from "./colours.js";
import { markList } from "./coverage.js";
import { choice, fill, h, labelled, refill, select } from "./dom.js";
import { meaningOf } from "./messageplaces.js";
import { elapsed, placed } from "./messagetime.js";
import { amount, number, short } from "./numbers.js";
import { legendShape } from "./shapes.js";
import { duration, within } from "./time.js";

export class MessageFacts {
  /** `changed(changes)` of the state; `opened(message)` when another one is asked for. */
  constructor(run, changed, opened) {
    this._run = run;
    this._changed = changed;
    this._opened = opened;
    this._counts = h("dl", { class: "values" });
    this.element = h("aside", { class: "side left", "aria-label": "What is shown" });
  }

  /** Show the message and the state in the controls. */
  show(message, way, state) {
    this._message = message;
    refill(this.element, () => [
      h("section", {}, h("h2", {}, "At this time"), this._counts),
      h("section", {}, h("h2", {}, "Reached, of the eligible"), this._marks(way)),
      h("section", {}, h("h2", {}, "Look"), this._look(message, way, state), this._legend(message, state)),
      h("section", {}, h("h2", {}, "Message"), this._about(message)),
    ]);
  }

  /** Show what had happened by then. */
  showCounts({ first, duplicate, refused, relays, flying, delivered }) {
    const { figures, unknown } = this._message.facts;
    const rows = [
      ["Eligible reached", delivered === null || figures.eligible == null ? "–"
        : `${number(delivered)} of ${number(figures.eligible)}`, "eligible peers: those that subscribed at the publication"],
      ["First copies", number(first), "peers that it reached"],
      ["Duplicates", unknown.duplicates ? "–" : number(duplicate), unknown.duplicates ?? "copies after the first"],
      ["Relays reached", number(relays), "first copies at peers that did not subscribe"],
      ["Refused", number(refused), "copies that a peer refused"],
      ["On their way", number(flying), "from when the sender had it to when it arrived"],
    ];
    fill(this._counts, rows.map(([word, value, meaning]) =>
      h("div", { title: meaning }, h("dt", {}, word), h("dd", {}, value))));
  }

  _marks(way) {
    const rows = markList(way, (at) => placed(way, at));
    if (!rows.length) return h("p", { class: "quiet" }, "Its eligible peers are unknown, or it has none.");
    return h("dl", { class: "values marks-list" }, rows.map(([share, at]) =>
      h("div", {}, h("dt", {}, share), h("dd", {}, at))));
  }

  _look(message, way, { by, layout, copies }) {
    const { timed } = message;
    const change = (key) => (value) => this._changed({ [key]: value });
    const layouts = [["hops", "columns by hop"], ["delay", "by delay"], ["race", "race"]];
    const note = by === "hop" ? "Steps are hops, not times."
      : "Copies move from when their sender had the message to when they arrived: sending times are unknown.";
    return [
      timed ? choice("Replay", [["delay", "by time"], ["hop", "by hop"]], by, change("by"))
        : h("p", { class: "quiet" }, `Replay by hop only: ${message.facts.unknown.times ?? "no arrival of this message has a time"}.`),
      labelled("Layout", select(timed ? layouts : layouts.slice(0, 1), layout, change("layout"))),
      h("p", { class: "quiet" }, meaningOf(layout, way)),
      choice("Copies", [["all", "all"], ["first", "first only"]], copies, change("copies")),
      h("p", { class: "quiet" }, note),
      ...this._warnings(way).map((text) => h("p", { class: "quiet" }, text)),
    ];
  }

  /** What cannot be drawn. */
  _warnings(way) {
    const what = way.by === "hop" ? "hop" : "time";
    return [
      way.unknown && `${amount(way.unknown, "copy", "copies")} of unknown ${what} arrive${way.unknown === 1 ? "s" : ""} at the end.`,
      way.unsent && `${amount(way.unsent, "copy", "copies")} without a sender that is known to have had it: not drawn on the way.`,
      way.early && `${amount(way.early, "copy", "copies")} arrived before the sender's own first: not drawn on the way.`,
      !way.sincePublication && way.by === "delay" && "The time of the publication is unknown: times count from the first arrival.",
    ].filter(Boolean);
  }

  _legend(message, { copies }) {
    const { ramp, missed, unknown, ink, link, path } = theme();
    const roles = new Set(message.peers.map(({ role }) => role));
    const middle = coloured(ramp, 0.5);
    const shape = (name, colour, text) => h("div", { class: "key" }, legendShape(name, colour), text);
    const line = (colour, text, kind = "") => h("div", { class: "key" },
      h("i", { class: `stroke ${kind}`, style: `background:rgb(${colour.join(" ")})` }), text);
    return h("div", { class: "legend" },
      h("figure", {}, h("figcaption", {}, "hop of the first copy"),
        h("div", { class: "ramp", style: `background:${gradient(ramp)}` }),
        h("div", { class: "ends" }, h("span", {}, "0"), h("span", {}, number(message.hops)))),
      h("div", { class: "keys-of-marks" },
        roles.has("publisher") && shape("publisher", coloured(ramp, 0), "publisher"),
        shape("subscriber", middle, "subscriber"),
        roles.has("relay") && shape("relay", middle, "relay: not subscribed"),
        roles.has("peer") && shape("peer", middle, "interest unknown"),
        roles.has("missed") && shape("missed", missed, "missed it"),
        shape("ring", unknown, "not reached yet"),
        line(ink, "first copy"), copies === "all" && line(link, "duplicate", "thin"),
        message.size > message.copies && line(path, "refused copy")));
  }

  _about({ facts }) {
    const { run, peers, topics, clock } = this._run.facts;
    const { name, topic, publisher, published_us, interval, publication_known } = facts;
    const named = (kind, place, names) => h("a", { href: page(run, kind, place), title: names[place] }, short(names[place], 60));
    const when = published_us !== null ? duration(published_us) : "–";
    const fact = (word, ...values) => h("div", {}, h("dt", {}, word), h("dd", {}, values));
    const [before, after] = facts.beside;
    const step = (text, m, key) => h("button", {
      type: "button", class: "small", disabled: m === null, title: `${text} message of the topic (${key})`,
      onclick: () => this._opened(m),
    }, text);
    return [
      h("dl", { class: "facts" },
        fact("Name", h("span", { class: "name", title: name }, short(name, 60))),
        fact("Topic", topic === null ? "unknown" : named("topic", topic, topics)),
        fact("Publisher", publisher === null ? "unknown" : named("peer", publisher, peers)),
        fact("Published", `${when} (interval ${number(interval)})`, publication_known ? null : ", not reported by the publisher")),
      h("p", {}, h("a", { href: write(run, "overlay", {
        t: within(clock, facts.tick), topics: topic === null ? [] : [topic], ...(publisher === null ? {} : { sel: publisher }),
      }) }, "The overlay at that time")),
      h("div", { class: "buttons" }, step("Previous", before, "P"), step("Next", after, "N")),
      this._delays(facts.figures),
    ];
  }

  _delays(figures) {
    const rows = [["delay_us_p50", "Median delay"], ["delay_us_p95", "95th percentile"], ["delay_us_max", "Largest delay"]]
      .filter(([key]) => figures[key] != null).map(([key, word]) => [word, elapsed(figures[key])]);
    if (figures.causality_violations) rows.push(["Before their cause", number(figures.causality_violations)]);
    return h("dl", { class: "values" }, rows.map(([word, value]) => h("div", {}, h("dt", {}, word), h("dd", {}, value))));
  }
}
