/** The screen Message: how one message spread. Holds what is shown, and brings its parts together. */

import * as address from "./address.js";
import { Clock } from "./clock.js";
import { CopyTable } from "./copytable.js";
import { coverageRow } from "./coverage.js";
import { Run } from "./data.js";
import { fill, h, id } from "./dom.js";
import { listen, ofClock, ofPicture } from "./keys.js";
import { nameOf } from "./look.js";
import { Message } from "./messagedata.js";
import { MessageFacts } from "./messagefacts.js";
import { MessagePicture } from "./messagepicture.js";
import { meaningOf, placesOf } from "./messageplaces.js";
import { MessageSelection } from "./messageselection.js";
import { elapsed, placed, scaleOf } from "./messagetime.js";
import { amount, number, short } from "./numbers.js";
import { search } from "./search.js";
import { beside, showsTable, showView, tools } from "./stage.js";
import { missing } from "./view.js";

const PATIENCE = 250; // milliseconds between tables while it plays

/** Open a run and show a message in an element. */
export async function showMessage(page, name, state) {
  document.title = `Message – ${name} – vizpub`;
  fill(page, h("main", { class: "waiting" }, h("p", {}, `Opening ${name} …`)));
  const run = await Run.open(name);
  return new MessageScreen(page, run, await opened(run, state.m), state);
}

const opened = async (run, number) => new Message(await run.message(number));

class MessageScreen {
  constructor(page, run, message, state) {
    this.screen = "message";
    this.name = run.facts.run;
    this.run = run;
    this.message = message;
    this.state = this._whole(state);
    this._build(page);
    this._unlisten = listen({
      ...ofClock(() => this.clock), ...ofPicture(() => this.picture),
      n: () => this._beside(1), p: () => this._beside(0),
      "/": () => this._search.querySelector("input").focus(),
      Escape: () => this.update({ sel: null }),
    });
    this._showMessage();
  }

  close() {
    this.clock.pause();
    this._unlisten();
    this._asking?.abort();
    this.picture?.destroy();
  }

  /** Without times there are neither delays nor a race. */
  _whole(state) {
    const { timed } = this.message;
    const by = timed ? state.by : "hop";
    const { first, last } = this.message.along(by);
    const at = state.at === null ? last : Math.min(Math.max(state.at, first), last);
    const sel = this.message.place.has(state.sel) ? state.sel : null;
    return { ...state, by, at, sel, layout: timed ? state.layout : "hops" };
  }

  get way() {
    return this.message.along(this.state.by);
  }

  _build(page) {
    const { run } = this;
    const { peers } = run.facts;
    const update = (changes) => this.update(changes);
    this._status = h("p", { class: "status", role: "status" });
    this._label = h("div", { class: "label", hidden: true });
    this._pinned = h("div", { class: "label pinned", hidden: true });
    this._canvas = h("div", { class: "canvas" });
    this._heading = h("h1", {});
    this._about = h("span", { class: "quiet" });
    this._table = new CopyTable(peers, (sel) => update({ sel }));
    this.facts = new MessageFacts(run, update, (m) => this._go(m));
    this.selection = new MessageSelection(run, update);
    this._search = search(peers, "Find a peer", (sel) => this._find(sel), "Find a peer  /");
    this._views = h("button", { type: "button", class: "small", onclick: () =>
      update({ view: this.state.view === "table" ? "picture" : "table" }) });
    this.clock = new Clock(scaleOf(this.way), {
      moved: (at) => this.update({ at }, { push: false }),
      paused: () => this._step(),
      chosen: update,
      change: (at, forward) => this.way.change(at, forward),
    });
    fill(page, h("main", { class: "overlay message" },
      h("div", { class: "bar" }, this._heading, this._about, h("span", { class: "grow" }), this._search, this._views),
      this.facts.element,
      h("div", { class: "stage" }, this._canvas, this._label, this._pinned, this._table.element,
        this._status, tools(() => this.picture, () => this._figure())),
      this.selection.element, this.clock.element));
    this._missing = missing();
    if (!this._missing) {
      this.picture = new MessagePicture(this._canvas, peers, {
        clicked: (sel) => update({ sel }),
        hovered: (peer, x, y) => this._hover(peer, x, y),
        moved: () => this._pin(),
        resized: () => this.picture && this.placed && this._place(),
        failed: (error) => this._say(error.message),
      });
    }
    page.querySelector(".stage").classList.toggle("without", Boolean(this._missing));
  }

  /** The end needs no mention. */
  _address() {
    const { state, way } = this;
    return address.write(this.name, "message", { ...state, at: state.at === way.last ? null : state.at });
  }

  /** What a saved picture has (png.js). */
  _figure() {
    const { state, way, message, counts } = this, { eligible } = message.facts.figures;
    const at = state.at === way.last ? "at the end" : placed(way, state.at);
    const reached = counts.delivered === null || eligible == null ? `${amount(counts.first, "peer")} reached`
      : `${number(counts.delivered)} of ${amount(eligible, "eligible peer")} reached`;
    return {
      stages: [{ element: this._canvas.parentElement, picture: this.picture }],
      legend: this.facts.element.querySelector(".legend"),
      caption: [
        `${this.name}, message ${message.facts.name}, ${at}`,
        `Message ${this._about.textContent} in the run ${nameOf(this.run.facts)}, ${at}: ${reached}, `
          + `${amount(counts.duplicate, "duplicate")}. ${meaningOf(state.layout, way)}`,
        this._address(),
      ],
      failed: (error) => this._say(error.message),
    };
  }

  /** Change what is shown. A choice can be taken back by the browser's Back; a time cannot. */
  update(changes, { push = true } = {}) {
    if ("by" in changes && changes.by !== this.state.by) changes = { at: null, speed: null, ...changes };
    const before = this.state;
    this.state = this._whole({ ...before, ...changes });
    this._say(this._plain);
    address[push ? "push" : "replace"](this._address());
    this._follow(before);
  }

  /** Show another state of the same run, as Back and Forward do. */
  async show(state) {
    if (state.m !== this.state.m) return this._open(state);
    const before = this.state;
    this.state = this._whole(state);
    this._themed();
    return this._follow(before);
  }

  _themed() {
    this.facts.show(this.message, this.way, this.state);
  }

  _follow(before) {
    const changed = (...keys) => keys.some((key) => before[key] !== this.state[key]);
    if (changed("by")) this._showClock();
    if (changed("by", "layout", "copies")) this._themed();
    if (changed("by", "layout")) this._place();
    this._showView();
    this._step();
  }

  /** Go to another message, which Back leaves again. */
  _go(m) {
    const state = { ...this.state, m, at: null, sel: null };
    address.push(address.write(this.name, "message", state));
    return this._open(state);
  }

  _beside(place) {
    const m = this.message.facts.beside[place];
    if (m !== null) this._go(m);
  }

  async _open(state) {
    this.clock.pause();
    let done;
    this.ready = new Promise((resolve) => (done = resolve));
    this._wanted = state.m;
    try {
      const message = await opened(this.run, state.m);
      if (this._wanted !== state.m) return;
      this.message = message;
      this.state = this._whole(state);
      this._showMessage();
      await this.ready;
    } catch (error) {
      this._say(error.message);
    } finally {
      done();
    }
  }

  /** Show another message in all parts. */
  _showMessage() {
    const { name, topic, provisional } = this.message.facts;
    this._heading.textContent = short(name, 40);
    this._heading.title = name;
    const topics = this.run.facts.topics;
    this._about.textContent = topic === null ? "of an unknown topic" : `of topic ${short(topics[topic] ?? "", 40)}`;
    document.title = `${short(name)} – ${this.name} – vizpub`;
    const none = this.message.size ? "" : "No copy of this message arrived anywhere.";
    this._plain = [this._missing, none, provisional].filter(Boolean).join(" ");
    this._say(this._plain);
    this._missed = null;
    this.ready = this._ask();
    this._showClock();
    this._themed();
    this._place();
    this._showView();
    this._step();
  }

  /** Who missed it is asked apart: it takes longer. */
  async _ask() {
    this._asking?.abort();
    const { signal } = (this._asking = new AbortController());
    try {
      const { rows, why } = await this.run.missed(this.state.m, signal);
      this._missed = rows;
      this.selection.setMissed(rows, why);
      this._step();
    } catch (error) {
      if (error.name !== "AbortError") this._say(error.message);
    }
  }

  _showClock() {
    this.clock.setScale(scaleOf(this.way));
    const { unknown } = this.message.facts;
    const why = this.state.by === "hop" ? unknown.hops : unknown.times;
    this._coverage = coverageRow(this.clock, this.way, why ?? "no eligible peers are known", id("coverage"));
    fill(this.clock.rows, this._coverage.row);
  }

  _showView() {
    showView(this._canvas.parentElement, this._views, this.state.view, Boolean(this._missing));
  }

  get _showsTable() {
    return showsTable(this.state.view, Boolean(this._missing));
  }

  _place() {
    if (!this.picture) return;
    const { layout } = this.state;
    this.placed = placesOf(this.way, layout, this.picture.aspect(layout, this.message.peers.length));
    this.picture.setWay(this.way, this.placed);
    this._draw();
  }

  /** A picture that is not shown costs nothing. */
  _draw() {
    if (this._showsTable) return;
    const { sel, copies, at } = this.state;
    this.picture?.setMarks({ peer: sel, duplicates: copies === "all" });
    if (this.placed) this.picture?.draw(at);
  }

  /** Show the state at its place of the clock. */
  _step() {
    const { state, way } = this;
    const counts = way.counts(state.at);
    this.counts = counts;
    this.clock.setPace(state);
    this.clock.show(state.at);
    this._coverage.show(counts.delivered);
    this.facts.showCounts(counts);
    this.selection.show(this.message, way, state);
    this._draw();
    this._pin();
    if (this._showsTable) this._showTable();
  }

  _showTable() {
    const now = performance.now();
    if (this.clock.playing && now - (this._tabled ?? 0) < PATIENCE) return;
    this._tabled = now;
    const { sel, copies, at } = this.state;
    this._table.show(this.way, at, { sel, duplicates: copies === "all", missed: this._missed });
  }

  _find(sel) {
    const there = this.message.place.has(sel);
    if (there) this.update({ sel });
    if (!there) this._say(`${short(this.run.facts.peers[sel])} neither received nor missed this message.`);
  }

  _say(text) {
    this._status.textContent = text;
    this._status.classList.toggle("empty", !text);
  }

  _hover(peer, x, y) {
    this._label.hidden = peer === null;
    if (peer === null) return;
    const i = this.message.place.get(peer);
    const { role, hop } = this.message.peers[i];
    const had = this.message.timed ? elapsed(this.message.along("delay").had[i]) : null;
    const told = role === "missed" ? ["missed"] : [role, hop >= 0 && `hop ${hop}`, had].filter(Boolean);
    fill(this._label, h("strong", {}, this.run.facts.peers[peer]), h("span", {}, told.join(" · ")));
    beside(this._label, x, y);
  }

  /** The name of what is selected stays beside it. */
  _pin() {
    const { sel } = this.state;
    const place = sel === null ? null : this.picture?.pixel(sel);
    this._pinned.hidden = !place;
    if (!place) return;
    this._pinned.textContent = short(this.run.facts.peers[sel], 26);
    beside(this._pinned, ...place);
  }
}
