/** The right side: the peer that is selected, or the overlay as a whole. */

import { page, write } from "./address.js";
import { commands } from "./commands.js";
import { withRange } from "./curves.js";
import { choice, fill, h, labelled, refill, roundButton, select } from "./dom.js";
import { amount, number, short, title } from "./numbers.js";
import { pathCommand, peerCommands } from "./printed.js";
import { search } from "./search.js";
import { periodText } from "./time.js";

const MOST_NEIGHBOURS = 100, MOST_TAGS = 12;

export class Selection {
  constructor(run, changed) {
    this._run = run;
    this._changed = changed;
    this.element = h("aside", { class: "side right", "aria-label": "Selected peer" });
    this._metric = null;
  }

  /** Peers of a run that is collected may be told what to do. */
  allow(live) {
    this._live = live;
  }

  /** Nothing is selected. */
  showNothing() {
    this._peer = null;
    fill(
      this.element,
      h("section", {}, h("h2", {}, "No peer is selected"),
        h("p", { class: "quiet" }, "Click a peer in the picture or the table, or find one by its name above."),
        h("h3", {}, "Keys"),
        h("dl", { class: "keys" }, KEYS.map(([key, does]) =>
          h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, does))))),
    );
  }

  /** A peer is selected; what the server knows comes later, by `showFacts`. */
  show(peer, state) {
    if (this._peer === peer && this._ego === state.ego && this._to === state.to) return;
    const same = this._peer === peer;
    this._peer = peer;
    this._ego = state.ego;
    this._to = state.to;
    const { peers: names, columns } = this._run.facts;
    this._metric = columns.peers.some(({ name }) => name === this._metric) ? this._metric
      : columns.peers.some(({ name }) => name === state.colour) ? state.colour : columns.peers[0]?.name;
    if (!same) {
      this._facts = h("div", {});
      this._neighbours = h("div", { class: "names" });
      this._around = h("h3", {}, "Neighbours");
      this._path = h("div", { class: "path", "aria-live": "polite" });
      this._curve = h("div", { class: "history" });
      this._commands = h("div", {});
      this._values = h("section", {});
    }
    const made = () => [
      h("section", {},
        h("div", { class: "title" },
          h("h2", { class: "peer", title: names[peer] }, names[peer]),
          roundButton("Select no peer (Esc)", "×", () => this._changed({ sel: null, to: null, ego: 0 }))),
        this._facts,
        h("p", { class: "links" },
          h("a", { href: page(this._run.facts.run, "peer", peer) }, "Its page"),
          this._run.facts.knows.publications
            ? h("a", { href: write(this._run.facts.run, "messages", { publisher: peer }) }, "Its messages") : null),
        this._live?.controls(peer)),
      h("section", {},
        choice("Show peers within", [[0, "all"], [1, "1 hop"], [2, "2"], [3, "3"]], state.ego,
          (ego) => this._changed({ ego })),
        this._around, this._neighbours),
      h("section", {}, h("h3", {}, "Shortest path"),
        search(names, "Shortest path to a peer", (to) => this._changed({ to }), "To peer …"),
        state.to === null ? null : h("button", { type: "button", class: "small",
          onclick: () => this._changed({ to: null }) }, "Clear the path"),
        this._path),
      columns.peers.length ? h("section", {}, h("h3", {}, "Over time"),
        labelled("Metric", select(columns.peers.map(({ name }) => [name, title(name)]), this._metric,
          (name) => { this._metric = name; this.showHistory(); })),
        this._curve) : null,
      this._values,
      h("section", {}, this._commands),
    ];
    if (same) refill(this.element, made);
    else fill(this.element, made());
    if (!same) this.showHistory();
    if (state.to === null) fill(this._path);
  }

  /** The curve of the metric that is chosen. */
  async showHistory() {
    const peer = this._peer, name = this._metric;
    if (!name) return;
    const [values] = await this._run.curvesOf("peer", { peer }, [name]);
    if (peer === this._peer && name === this._metric) fill(this._curve, withRange(values));
  }

  /** What the server knows of the peer at this time. */
  showFacts({ present, topics, roles, attributes, values, interval }, tick, layers) {
    const clock = this._run.clock;
    const many = (names) => (names.length > MOST_TAGS ? [...names.slice(0, MOST_TAGS), `and ${names.length - MOST_TAGS} more`] : names);
    const known = Object.entries(values);
    fill(this._facts,
      h("dl", { class: "facts" },
        fact("Present in intervals", [many(present.map((of) => periodText(clock, of))).join(", ")]),
        this._run.facts.knows.subscriptions && tags(`Topics (${topics.length})`, many(topics), (name) =>
          page(this._run.facts.run, "topic", this._run.facts.topics.indexOf(name))),
        roles.length > 0 && tags("Roles", many(roles.map(({ role, topic }) => (topic === null ? role : `${role} of ${topic}`))))),
    );
    fill(this._values, attributes.length ? [h("h3", {}, "Attributes"), h("dl", { class: "attributes" },
      attributes.map(([key, value]) => h("div", {}, h("dt", {}, short(key)), h("dd", { title: value }, short(value)))))] : null,
    h("h3", {}, `Values in interval ${number(interval)}`),
      h("dl", { class: "values" }, known.map(([name, value]) =>
        h("div", { title: name }, h("dt", {}, title(name)), h("dd", {}, number(value))))));
    fill(this._commands, commands(peerCommands(this._run.facts, this._peer, tick, layers)));
  }

  /** Its neighbours now: number → { out, in }. */
  showNeighbours(found, present, topics) {
    const names = this._run.facts.peers;
    this._around.textContent = present
      ? `Neighbours${topics ? " in the chosen topics" : ""} (${number(found.size)})`
      : "Not shown at this time";
    const arrow = ({ out, in: back }) => (out && back ? "↔" : out ? "→" : "←");
    const all = [...found].sort(([a], [b]) => a - b);
    const more = all.length - MOST_NEIGHBOURS;
    fill(this._neighbours,
      all.slice(0, MOST_NEIGHBOURS).map(([peer, ways]) => h("div", {},
        h("a", { href: write(this._run.facts.run, "link", { src: this._peer, dst: peer }),
          "aria-label": `Link with ${names[peer]}`, title: "The page of the link" }, arrow(ways)),
        h("button", { type: "button", title: names[peer],
          onclick: () => this._changed({ sel: peer, to: null }) }, short(names[peer])))),
      more > 0 ? h("p", { class: "quiet" }, `and ${number(more)} more`) : null);
  }

  /** A path at a tick over links of some layers: peers by number, null where there is none; or why it is
   * not known. */
  showPath({ peers, why }, tick, layers) {
    const names = this._run.facts.peers;
    if (why || !peers) {
      return fill(this._path, h("p", { class: "quiet" }, why ?? "There is no path at this time."));
    }
    return fill(this._path,
      h("p", {}, amount(peers.length - 1, "hop")),
      h("ol", {}, peers.map((peer) => h("li", {}, h("button", { type: "button", title: names[peer],
        onclick: () => this._changed({ sel: peer, to: null }) }, short(names[peer]))))),
      h("div", { class: "command" }, h("pre", { tabindex: "0", "aria-label": "The same by command" },
        pathCommand(this._run.facts, this._peer, this._to, tick, layers))));
  }
}

const KEYS = [
  ["Space", "play or pause"], ["← →", "one interval back or forward"],
  ["Shift ← →", "the change before or after"], ["Home End", "begin and end"],
  ["+ −", "zoom"], ["F", "fit the picture"], ["/", "find a peer"], ["Esc", "select no peer"],
];

const tags = (word, names, href = null) =>
  h("div", {}, h("dt", {}, word), h("dd", { class: "tags" }, names.length ? names.map((name, i) =>
    h("span", { title: name }, href && i < MOST_TAGS ? h("a", { href: href(name) }, name) : name)) : "–"));

const fact = (word, lines) =>
  h("div", {}, h("dt", {}, word), (lines.length ? lines : ["–"]).map((line) => h("dd", {}, line)));
