/** The left side: what is shown, and how it looks. */

import { write } from "./address.js";
import { checkbox, choice, fill, h } from "./dom.js";
import { Legend, lookControls } from "./look.js";
import { amount, number } from "./numbers.js";
import { chips, PartControls } from "./part.js";

const MOST_TOPICS = 60;
/** Peers of a list in the address, which browsers and mails cut where it is very long. */
export const MOST_CHOSEN = 200;

export class Filters {
  /** `choose(what)` is called to choose all peers "shown", the "neighbours" of the selected one, or none (""). */
  constructor(run, state, changed, choose) {
    this._run = run;
    this._changed = changed;
    this._choose = choose;
    this._chosen = [];
    this.legend = new Legend([...run.facts.columns.peers, ...run.facts.columns.groups]);
    this._when = h("h2", {});
    this._counts = h("dl", { class: "values" });
    this._part = new PartControls((changes) => this._changed(changes));
    this._buttons = ["pins", "hidden"].map((list) =>
      h("button", { type: "button", class: "small", onclick: () => this._toggle(list) }));
    this._lists = h("div", {});
    this._several = h("div", { role: "group", "aria-label": "Several peers" });
    this.element = h("aside", { class: "side left", "aria-label": "What is shown" });
    this.show(state);
  }

  /** Show the state in the controls. */
  show(state) {
    this._state = state;
    fill(
      this.element,
      h("section", {}, this._when, this._counts),
      h("section", {}, h("h2", {}, "Look"),
        lookControls(this._run.facts.columns.peers, this._run.facts.columns.groups, state, (changes) => this._change(changes)), this.legend.element),
      this._topicSection(),
      this._run.facts.layers.length ? this._layers() : null,
      h("section", {}, h("h2", {}, "Peers"), this._part.elements,
        h("div", { class: "buttons" }, this._buttons), this._several, this._lists),
    );
    this._showPart();
  }

  /** Show which peers the state leaves, which depends on the one that is selected. */
  showPart(state) {
    const keys = ["sel", "least", "most", "component", "pins", "hidden", "only"];
    if (keys.every((key) => String(state[key]) === String(this._state[key]))) return;
    this._state = state;
    this._showPart();
  }

  _showPart() {
    const { sel, pins, hidden, only } = this._state;
    const { peers } = this._run.facts;
    this._part.show(this._state, sel !== null);
    [["Pin", "Unpin", pins], ["Hide", "Show", hidden]].forEach(([add, remove, list], i) => {
      this._buttons[i].textContent = list.includes(sel) ? remove : add;
      this._buttons[i].disabled = sel === null;
    });
    fill(this._lists, [["Only these", "only", only], ["Pinned", "pins", pins], ["Hidden", "hidden", hidden]].map(
      ([word, list, of]) => chips(word, of, peers, (leaving) => this._take(list, leaving))));
    this._showSeveral();
  }

  /** Show how many peers are chosen. */
  setChosen(peers) {
    this._chosen = peers;
    this._showSeveral();
  }

  /** What can be chosen, and what can be done with what is chosen. */
  _showSeveral() {
    const { _chosen: chosen, _state: { sel } } = this;
    const key = `${chosen.length} ${sel === null}`;
    if (key === this._shownSeveral) return; // or the buttons would lose the focus
    this._shownSeveral = key;
    const button = (text, act, disabled = false) => h("button", { type: "button", class: "small", disabled, onclick: act }, text);
    const isTooMany = chosen.length > MOST_CHOSEN;
    const put = (text, list) => button(text, () => this._put(list, chosen), isTooMany);
    const hasFocus = this._several.contains(document.activeElement);
    fill(this._several, h("p", { class: "quiet", role: "status" }, chosen.length
      ? `${amount(chosen.length, "peer")} chosen.${isTooMany ? ` Lists hold at most ${number(MOST_CHOSEN)}, as the address has them: choose fewer.` : ""}`
      : ["Choose several", h("span", { class: "of-picture" }, ": drag with Shift, or")]),
    h("div", { class: "buttons" }, chosen.length
      ? [put("Only these", "only"), put("Pin", "pins"), put("Hide", "hidden"), button("None", () => this._choose(""))]
      : [button("All shown", () => this._choose("shown")), button("Neighbours", () => this._choose("neighbours"), sel === null)]));
    if (hasFocus) this._several.querySelector("button:enabled").focus();
  }

  /** Put the selected peer on the list of the pinned or the hidden ones, or take it off. */
  _toggle(list) {
    const { sel } = this._state;
    if (this._state[list].includes(sel)) this._take(list, [sel]);
    else this._put(list, [sel]);
  }

  /** Put peers on a list, which has the last ones; nobody is both pinned and hidden. */
  _put(list, peers) {
    const others = (name) => without(this._state[name], peers);
    this._choose("");
    this._changed(list === "only" ? { only: peers }
      : { pins: others("pins"), hidden: others("hidden"), [list]: [...others(list), ...peers].slice(-MOST_CHOSEN) });
  }

  _take(list, peers) {
    this._changed({ [list]: without(this._state[list], peers) });
  }

  _change(changes) {
    this._state = { ...this._state, ...changes };
    this._changed(changes);
  }

  /** The topics to choose from, or the one of an exported part. */
  _topicSection() {
    const { topics, knows, exported } = this._run.facts;
    if (knows.subscriptions && topics.length) return this._topics();
    return exported?.topic == null ? null
      : h("section", {}, h("h2", {}, "Topic"), h("p", {}, topics[exported.topic]), this._relays());
  }

  _topics() {
    const { topics: names } = this._run.facts;
    const list = h("div", { class: "list" });
    const chosen = () => this._state.topics;
    const how = h("div", {});
    const { run, knows } = this._run.facts;
    const messages = ([topic]) => knows.publications && h("p", {},
      h("a", { href: write(run, "messages", { topic }) }, "Messages of the topic"));
    const showHow = () => fill(how,
      chosen().length ? this._relays() : null,
      chosen().length === 1 ? messages(chosen()) : null,
      chosen().length > 1 ? choice("Of the topics", [["any", "any of them"], ["all", "all of them"]],
        this._state.how, (value) => this._change({ how: value })) : null);
    const toggled = (topic, on) => {
      this._change({ topics: on ? [...chosen(), topic] : chosen().filter((of) => of !== topic) });
      showHow();
    };
    const showList = (text) => {
      const wanted = text.toLowerCase();
      const found = names.map((name, topic) => topic).filter(
        (topic) => chosen().includes(topic) || names[topic].toLowerCase().includes(wanted));
      found.sort((a, b) => chosen().includes(b) - chosen().includes(a) || a - b);
      const more = found.length - MOST_TOPICS;
      fill(list,
        found.slice(0, MOST_TOPICS).map((topic) =>
          checkbox(names[topic], chosen().includes(topic), (on) => toggled(topic, on))),
        more > 0 ? h("p", { class: "quiet" }, `and ${number(more)} more: type a part of the name`) : null,
        found.length ? null : h("p", { class: "quiet" }, "No such topic"));
    };
    const filter = names.length > 8 && h("input", {
      type: "search", "aria-label": "Find a topic", placeholder: "Find a topic",
      oninput: (event) => showList(event.target.value),
    });
    showList("");
    showHow();
    return h(
      "section", {}, h("h2", {}, "Topics"),
      h("p", { class: "quiet" }, "Their subscribers, and the links between them. None = all peers."),
      filter, list, how,
    );
  }

  _relays() {
    const box = checkbox("Relays too, as squares", this._state.relays === 1, (on) => this._change({ relays: on ? 1 : 0 }));
    const isKnown = this._run.facts.knows.relays;
    box.querySelector("input").disabled = !isKnown;
    box.title = isKnown ? "Peers that do not subscribe, but have a link for the topic, or receive or forward its messages"
      : "The source of the run reports neither links for topics nor who received messages";
    return box;
  }

  _layers() {
    const { layers: names, counted } = this._run.facts;
    const chosen = () => this._state.layers ?? counted;
    const boxes = names.map((name) => checkbox(name, chosen().includes(name), (on) => {
      const next = names.filter((of) => (of === name ? on : chosen().includes(of)));
      if (!next.length) return this.show(this._state); // without layers, the address means all that are counted
      const plain = next.length === counted.length && counted.every((of) => next.includes(of));
      this._change({ layers: plain ? null : next });
    }));
    return h("section", {}, h("h2", {}, "Layers of links"), h("div", { class: "list" }, boxes));
  }

  /** Show [word, value, title] rows, and the time that they are of. */
  showCounts(rows, when) {
    this._when.textContent = when;
    fill(this._counts, rows.map(([word, value, meaning]) =>
      h("div", { title: meaning }, h("dt", {}, word), h("dd", {}, value))));
  }
}

const without = (list, peers) => list.filter((peer) => !peers.includes(peer));
