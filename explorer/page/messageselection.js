/** The right side of the screen Message: a peer's part in it, or who missed it and who refused it. */

import { page, write } from "./address.js";
import { commands } from "./commands.js";
import { fill, h, roundButton } from "./dom.js";
import { DUPLICATE, FIRST, REFUSED } from "./messagedata.js";
import { elapsed } from "./messagetime.js";
import { amount, number, short } from "./numbers.js";
import { within } from "./time.js";

const MOST = 100;

export class MessageSelection {
  constructor(run, changed) {
    this._run = run;
    this._changed = changed;
    this.element = h("aside", { class: "side right", "aria-label": "Selected peer" });
  }

  /** Who missed it, when the server has told; or why that is unknown. */
  setMissed(rows, why) {
    this._missed = rows;
    this._whyUnknown = why;
    this._shown = null;
  }

  /** Show what is selected. */
  show(message, way, { sel }) {
    if (this._message !== message) {
      this._missed = this._whyUnknown = undefined;
      this._message = message;
      this._shown = null;
    }
    const key = `${sel} ${way.by}`;
    if (this._shown === key) return;
    this._shown = key;
    fill(this.element, ...(sel === null ? this._nobody() : this._one(way, sel)),
      h("section", {}, commands(this._commands())));
  }

  _commands() {
    const { copies, missed, figure, cypher, cypher_missed } = this._message.facts.commands;
    return [["Copies", copies], ["Who missed it", missed], ["A figure", figure],
      ["Copies, in Cypher", cypher], ["Who missed it, in Cypher", cypher_missed]];
  }

  _peer(peer, more = "") {
    const name = this._run.facts.peers[peer];
    return h("button", { type: "button", title: name, onclick: () => this._changed({ sel: peer }) },
      short(name, 30), more && h("span", { class: "quiet" }, more));
  }

  _nobody() {
    const message = this._message;
    const refused = [...message.to.keys()].filter((i) => message.kind[i] === REFUSED);
    return [
      h("section", {}, h("h2", {}, "No peer is selected"),
        h("p", { class: "quiet" }, "Click a peer in the picture, or find one by its name above.")),
      this._missing(),
      refused.length ? h("section", {}, h("h3", {}, `Refused it (${number(refused.length)})`),
        this._list(refused.map((i) => this._peer(message.to[i], message.why(i))))) : null,
      h("section", {}, h("h3", {}, "Keys"), h("dl", { class: "keys" }, KEYS.map(([key, does]) =>
        h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, does))))),
    ];
  }

  _missing() {
    const { missed } = this._message;
    if (this._whyUnknown) {
      return h("section", {}, h("h3", {}, "Missed it"), h("p", { class: "quiet" }, this._whyUnknown));
    }
    if (!missed.length) {
      return h("section", {}, h("h3", {}, "Missed it"), h("p", { class: "quiet" }, "No eligible peer missed it."));
    }
    const rows = this._missed ?? missed.map(({ peer }) => ({ peer, why: "…" }));
    const of = grouped(rows);
    return h("section", { class: "missing" }, h("h3", {}, `Missed it (${number(missed.length)})`),
      [...of].map(([why, some]) => [h("h4", {}, `${why} (${number(some.length)})`),
        this._list(some.map((row) => this._peer(row.peer, held(row))))]));
  }

  _list(buttons) {
    const more = buttons.length - MOST;
    return h("div", { class: "names two" }, buttons.slice(0, MOST),
      more > 0 ? h("p", { class: "quiet" }, `and ${number(more)} more: see the table`) : null);
  }

  _one(way, peer) {
    const message = this._message;
    const { run, peers, clock } = this._run.facts;
    const about = message.peers[message.place.get(peer)];
    const all = [...way.order];
    const came = all.filter((i) => message.to[i] === peer), went = all.filter((i) => message.from[i] === peer);
    const when = (i) => {
      const at = message.time[i];
      const known = Number.isNaN(at) ? null : elapsed(at - message.along("delay").origin);
      const kind = { [FIRST]: "first", [DUPLICATE]: "duplicate", [REFUSED]: `refused: ${message.why(i)}` }[message.kind[i]];
      return [message.hop[i] >= 0 && `hop ${message.hop[i]}`, known, kind].filter(Boolean).join(" · ");
    };
    const row = (i, other) => (other < 0 ? h("p", { class: "quiet" }, `unknown sender · ${when(i)}`) : this._peer(other, when(i)));
    const missed = this._missed?.find((of) => of.peer === peer);
    const roles = { publisher: "Publisher", subscriber: "Subscriber", relay: "Relay: it did not subscribe",
      peer: "Its interest is unknown", missed: "Missed it" };
    const tick = within(clock, message.facts.tick);
    return [
      h("section", {},
        h("div", { class: "title" }, h("h2", { class: "peer", title: peers[peer] }, peers[peer]),
          roundButton("Select no peer (Esc)", "×", () => this._changed({ sel: null }))),
        h("p", {}, roles[about.role], about.rendezvous ? ", and rendezvous of the topic" : ""),
        missed ? h("p", { class: "quiet" }, [missed.why ?? "The reason is unknown", held(missed)].filter(Boolean).join("; ")) : null,
        about.eligible || ["publisher", "missed"].includes(about.role) ? null
          : h("p", { class: "quiet" }, "Not eligible: it did not subscribe at the publication."),
        h("p", { class: "links" }, h("a", { href: page(run, "peer", peer) }, "Its page"),
          h("a", { href: write(run, "overlay", { t: tick, sel: peer }) }, "In the overlay at that time"))),
      h("section", {}, h("h3", {}, `Came to it (${number(came.length)})`), this._list(came.map((i) => row(i, message.from[i])))),
      h("section", {}, h("h3", {}, `Passed on (${number(went.length)})`), this._list(went.map((i) => row(i, message.to[i])))),
    ];
  }
}

/** How many of its neighbours had it; empty where that is unknown. */
const held = ({ neighbours, neighbours_with_it }) =>
  neighbours == null ? "" : `${number(neighbours_with_it)} of ${amount(neighbours, "neighbour")} had it`;

/** Rows by their reason. */
function grouped(rows) {
  const found = new Map();
  for (const row of rows) {
    const why = row.why ?? "reason unknown";
    found.set(why, [...(found.get(why) ?? []), row]);
  }
  return found;
}

const KEYS = [
  ["Space", "play or pause"], ["← →", "one step back or forward"], ["Shift ← →", "the arrival before or after"],
  ["Home End", "begin and end"], ["P N", "message before or after"], ["+ −", "zoom"], ["F", "fit the picture"],
  ["/", "find a peer"], ["Esc", "select no peer"],
];
