/** The left side: what is shown, and how it looks. */

import { write } from "./address.js";
import { checkbox, choice, fill, h } from "./dom.js";
import { Legend, lookControls } from "./look.js";
import { number } from "./numbers.js";

const MOST_TOPICS = 60;

export class Filters {
  constructor(run, state, changed) {
    this._run = run;
    this._changed = changed;
    this.legend = new Legend(run.facts.columns.peers);
    this._counts = h("dl", { class: "values" });
    this.element = h("aside", { class: "side left", "aria-label": "What is shown" });
    this.show(state);
  }

  /** Show the state in the controls. */
  show(state) {
    this._state = state;
    fill(
      this.element,
      h("section", {}, h("h2", {}, "At this time"), this._counts),
      h("section", {}, h("h2", {}, "Look"),
        lookControls(this._run.facts.columns.peers, state, (changes) => this._change(changes)), this.legend.element),
      this._run.facts.knows.subscriptions && this._run.facts.topics.length ? this._topics() : null,
      Object.keys(this._run.facts.layers).length ? this._layers() : null,
    );
  }

  _change(changes) {
    this._state = { ...this._state, ...changes };
    this._changed(changes);
  }

  _topics() {
    const { topics: names } = this._run.facts;
    const list = h("div", { class: "list" });
    const chosen = () => this._state.topics;
    const how = h("div", {});
    const { run, knows } = this._run.facts;
    const messages = ([topic]) => knows.publications && h("p", {},
      h("a", { href: write(run, "messages", { topic }) }, "Messages of the topic"));
    const showHow = () => fill(how, chosen().length < 2 ? (chosen().length ? messages(chosen()) : null) : choice(
      "Peers that subscribe to", [["any", "any of them"], ["all", "all of them"]],
      this._state.how, (value) => this._change({ how: value })));
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

  _layers() {
    const { layers, counted } = this._run.facts;
    const names = Object.keys(layers);
    const chosen = () => this._state.layers ?? counted;
    const boxes = names.map((name) => checkbox(name, chosen().includes(name), (on) => {
      const next = names.filter((of) => (of === name ? on : chosen().includes(of)));
      const plain = next.length === counted.length && counted.every((of) => next.includes(of));
      this._change({ layers: plain ? null : next });
    }));
    return h("section", {}, h("h2", {}, "Layers of links"), h("div", { class: "list" }, boxes));
  }

  /** Show [word, value, title] rows of this time. */
  showCounts(rows) {
    fill(this._counts, rows.map(([word, value, meaning]) =>
      h("div", { title: meaning }, h("dt", {}, word), h("dd", {}, value))));
  }
}
